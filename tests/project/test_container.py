"""The image for a CI, as far as its file shows: what it installs, and as whom it runs. `tests/roots.py FOLDER
--container` carries it out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = re.sub(r"\\\n\s*", " ", (ROOT / "host/Containerfile").read_text())
LINES = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and not line.startswith("#")]


def of(word: str) -> list[str]:
    return [rest for name, rest in LINES if name == word]


def test_it_installs_what_the_package_suggests():
    suggests = re.search("^Suggests: (.*)$", (ROOT / "host/build_deb.py").read_text(), re.MULTILINE)[1].split(", ")
    installs = [re.search("--no-install-recommends (.*?) &&", line)[1].split() for line in of("RUN")[:2]]
    assert set(installs[0]) <= set(suggests) and {"fio", "smartmontools", "micropython"} <= set(installs[0])
    assert [names for line in of("COPY") for names in line.split()[:-1]] == ["ssdrig_*_all.deb"]
    assert installs[1] == ["/tmp/ssdrig_*_all.deb"]


def test_it_does_not_run_as_root():
    (user,) = of("USER")
    assert user != "root" and f"useradd --create-home {user}" in of("RUN")[-1] and of("ENTRYPOINT") == ['["ssdrig"]']
