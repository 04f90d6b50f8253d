"""The simulated SSD as a device: its store, its ledger, and its fronts: NBD, an admin socket, NVMe over TCP.

An unmodified Linux kernel sees the latter as /dev/nvmeXn1. It is `tcpserver` (one TCP connection is one queue),
`io`, `controller`, `subsystem`, `identify`, `pdu` and `status`. Source of the numbers: NVM Express Base
Specification 1.4 and 2.0, NVMe over Fabrics 1.1, NVMe/TCP Transport 1.0."""
