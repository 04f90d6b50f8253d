"""Files that ship with ssdrig outside its modules, and what differs between a clone and an installed package.

A wheel (host/build_package.py) has these files in ssdrig/shipped/, under the paths that they have in the clone."""

import re
from pathlib import Path

from ssdrig.base.deferred import is_installed
from ssdrig.base.errors import ToolMissing

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = (PACKAGE / "shipped").is_dir()
FILES = PACKAGE / "shipped" if INSTALLED else PACKAGE.parents[1]
DEBIAN = PACKAGE.is_relative_to("/usr/lib/python3/dist-packages")  # of ssdrig's .deb (host/build_deb.py)
DEBIAN_PACKAGES = {"bench": "python3-numba"}  # extra -> package; what Debian lacks or has too old is not here
CLONE = "clone ssdrig's repository and start the program in it"
DISTRIBUTIONS = {"serial": "pyserial"}  # whose package has another name than what is imported
_COMMAND = re.compile(r"(?<![\w/.~-])\./ssdrig(?=[ `'\"\n]|$)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*?(?:extra == ['\"]([\w-]+)['\"])?$")


def path(name: str) -> Path:
    """A shipped file or folder by its path in the clone, such as "schemas/influx.toml"."""
    return FILES / name


def as_called(text: str) -> str:
    """The text with commands as they are typed here: `ssdrig …` of an installed package, `./ssdrig …` in a clone."""
    return _COMMAND.sub("ssdrig", text) if INSTALLED else text


def installing(extra: str) -> str:
    """The command that installs one of ssdrig's extras, "" for what it always needs."""
    if INSTALLED and DEBIAN:
        package = DEBIAN_PACKAGES.get(extra)
        return f"apt-get install {package}" if package else f"pipx install 'ssdrig{f'[{extra}]' * bool(extra)}'"
    if INSTALLED:
        return f"pip install 'ssdrig[{extra}]'" if extra else "pip install ssdrig"
    return f"./ssdrig setup --extra {extra}" if extra else "./ssdrig setup"


def extra_of(package: str) -> str | None:
    """The extra that has an imported package; "": none, every install has it; None: ssdrig does not use it.

    Only of an installed ssdrig: its metadata has the answer."""
    from importlib import metadata  # slow, and only after an error

    wanted = DISTRIBUTIONS.get(package, package)
    for text in metadata.requires("ssdrig") or ():
        match = _REQUIREMENT.fullmatch(text)
        if match and match[1].lower() == wanted:
            return match[2] or ""
    return None


def missing(package: str) -> ToolMissing:
    """The error for a package, or a module of the clone, that cannot be imported in an installed ssdrig."""
    extra = extra_of(package)
    if extra is None:
        return ToolMissing("a clone of ssdrig, which has the sources that this needs", "an installed package", CLONE)
    return ToolMissing(f"the Python package {package}", "it is not installed", installing(extra))


def require(package: str) -> None:
    """Raises ToolMissing where an installed ssdrig lacks a package; a clone has set up what its command needs."""
    if INSTALLED and not is_installed(package):
        raise missing(package)
