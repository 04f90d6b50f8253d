"""In MicroPython: writes an image of the file system that a Pico's flash has, with these files in it: what is compiled
(.mpy) in the folder `compiled`, where no import looks unless it is told to.

micropython files.py IMAGE FILE...
"""

import sys

try:
    import vfs
except ImportError:  # MicroPython 1.22
    import os as vfs

BLOCK_BYTES = 4096
BLOCKS = 352  # 1408 KiB: MICROPY_HW_FLASH_STORAGE_BYTES of the Pico
PROGRAM_BYTES = 256  # as the RP2 port's _boot.py asks for


class Disk:
    """A block device in memory."""

    def __init__(self):
        self.data = bytearray(b"\xff" * (BLOCKS * BLOCK_BYTES))

    def readblocks(self, number, buffer, offset=0):
        at = number * BLOCK_BYTES + offset
        buffer[:] = memoryview(self.data)[at : at + len(buffer)]

    def writeblocks(self, number, buffer, offset=0):
        at = number * BLOCK_BYTES + offset
        self.data[at : at + len(buffer)] = buffer

    def ioctl(self, question, number):
        if question == 4:
            return BLOCKS
        if question == 5:
            return BLOCK_BYTES
        if question == 6:  # erase
            self.writeblocks(number, b"\xff" * BLOCK_BYTES)
        return 0


disk = Disk()
vfs.VfsLfs2.mkfs(disk, progsize=PROGRAM_BYTES)
files = vfs.VfsLfs2(disk, progsize=PROGRAM_BYTES)
files.mkdir("compiled")
for path in sys.argv[2:]:
    name = path.split("/")[-1]
    with open(path, "rb") as source, files.open("compiled/" + name if name.endswith(".mpy") else name, "wb") as target:
        target.write(source.read())
files.umount()
with open(sys.argv[1], "wb") as image:
    image.write(disk.data)
