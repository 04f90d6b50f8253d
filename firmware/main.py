"""What MicroPython runs when the board starts; with BOOTSEL held, nothing: a way in, whatever the firmware does.
(Press it right after plugging in: held while plugging in, it starts the chip's own boot loader.)
"""

import rp2

if not rp2.bootsel_button():
    import heap  # noqa: F401
    import rig

    rig.run()
