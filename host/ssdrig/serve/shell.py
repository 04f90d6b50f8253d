"""The page of the bench in the browser: one HTML text without any data, in which scripts and style stand as they are,
so that its policy can name each by its hash."""

from pathlib import Path
from typing import NamedTuple

from ssdrig import report
from ssdrig.base.shipped import as_called
from ssdrig.serve.pages import hash_of

HERE = Path(__file__).parent
REPORT = Path(report.__file__).parent  # whose panels and colours these are
SCRIPTS = (
    REPORT / "vendor/uPlot.iife.min.js",
    REPORT / "panels.js",
    *(HERE / f"{n}.js" for n in ("client", "live", "cut", "rigs", "reviews", "lists")),
)
STYLES = (REPORT / "vendor/uPlot.min.css", REPORT / "report.css", HERE / "shell.css")


class Shell(NamedTuple):
    """The page, and the policy that it is sent with."""

    html: bytes
    policy: str


def page() -> Shell:
    scripts = [path.read_bytes() for path in SCRIPTS]
    style = b"".join(path.read_bytes() for path in STYLES)
    html = (
        as_called((HERE / "shell.html").read_text("utf-8"))
        .encode()
        .replace(b"<!-- style -->", b"<style>" + style + b"</style>")
    )
    html = html.replace(b"<!-- scripts -->", b"".join(b"<script>" + script + b"</script>" for script in scripts))
    hashes = " ".join(map(hash_of, scripts))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src {hash_of(style)}; connect-src 'self';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    )
    return Shell(html, policy)
