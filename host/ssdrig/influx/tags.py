"""The tags by which points of one run belong together."""

from collections.abc import Mapping


def drive_tag(header: Mapping) -> str:
    """Model and serial: unique to the drive, and readable in a legend. What is not known is left out."""
    return f"{header['drive'].get('model') or ''} {header['drive'].get('serial') or ''}"


def host_tag(header: Mapping) -> str:
    """The name of the machine the drive sat in; "" in runs that do not say."""
    host = header.get("host")
    name = host.get("name") if isinstance(host, Mapping) else None
    return name if isinstance(name, str) else ""
