"""The virtual drive as an NVMe controller over NVMe/TCP, SIMULATED: an unmodified Linux kernel sees it as /dev/nvmeXn1.

    pdu         frames: NVMe/TCP transport 1.0, without digests
    status      status codes
    identify    data structures of Identify and of the log pages that health does not need (those are in smartlog)
    subsystem   what all controllers share: name, errors, sanitize, format, features of the namespace
    controller  one host's controller: properties, features, admin commands, asynchronous events
    io          checks of I/O commands and their requests to the drive
    tcpserver   one TCP connection = one queue
    transfers   data that a host sends after it was asked for

Source of the numbers: NVM Express Base Specification 1.4 and 2.0, NVMe over Fabrics 1.1, NVMe/TCP Transport 1.0."""
