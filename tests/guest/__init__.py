"""A Debian kernel in QEMU with real block devices, and this machine's root beneath it: the unmodified tool runs in it.

kernel.py fetches the kernel, initramfs.py packs what boots it, qemu.py has the disks and the command line, machine.py
runs QEMU and talks to agent.py in the guest.
`python -m guest -- CMD` runs one command in a guest made for it."""
