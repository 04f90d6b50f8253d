"""What MicroPython runs when the board starts."""

import rig

rig.run()
