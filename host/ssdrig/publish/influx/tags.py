"""The tags by which points of one run belong together."""

from collections.abc import Mapping

from ssdrig.drive.identity import ENCLOSURE, Identity


def drive_tag(header: Mapping) -> str:
    """Model and serial: unique to the drive, and readable in a legend; of a disk that shows its enclosure's serial also
    its identity in the database. An unknown figure is left out."""
    drive = header["drive"]
    serial = drive.get("serial") or ""
    if drive.get("serial_source") == ENCLOSURE:
        serial = Identity.of(drive).consent
    return f"{drive.get('model') or ''} {serial}"


def host_tag(header: Mapping) -> str:
    """The name of the machine the drive sat in; "" if the run does not record it."""
    host = header.get("host")
    name = host.get("name") if isinstance(host, Mapping) else None
    return name if isinstance(name, str) else ""
