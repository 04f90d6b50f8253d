"""The lake: runs as Parquet, in a folder or in a bucket, and SQL over them. What may stand in it is schemas/lake.toml.

A run is in the lake once its row of the kind `run` is, which is written last and names all its files. Readers open
these files and no others: they see whole runs or none, however many benches write and whenever one is killed."""

from types import ModuleType

from ssdrig.base import shipped
from ssdrig.base.errors import ToolMissing

EXTRA = "lake"


def needs(name: str) -> ModuleType:
    """The package `name` of the extra. Raises ToolMissing, which names the extra, where it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ToolMissing(
            f"the package {name.partition('.')[0]}, of ssdrig's extra `{EXTRA}`", str(error), shipped.installing(EXTRA)
        ) from error
