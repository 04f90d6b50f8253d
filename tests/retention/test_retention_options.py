"""The options of `run retention write|verify`: what they become, and what is refused before anything starts."""

import argparse
import os

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.retention import verifying
from ssdrig.run import keeping, options, prepare

DRIVE = {
    "capacity_bytes": 1 << 40,
    "raw_nand_bytes": None,
    "logical_block_bytes": 512,
    "interface": "NVMe",
    "time_dilation": 1,
    "rated_write_bytes": 600 * 10**12,
}


def checked(*words) -> argparse.Namespace:
    args = options.parse(["retention", *words])
    options.check(args)
    return args


def test_two_words_name_a_plan_and_its_options_set_its_parameters():
    args = checked("write", "--drive", "S1", "--wear-to", "50", "--class", "client")
    assert args.plan == "retention-write" and options.parameters(args) == (None, {"wear": "50", "class": "client"})
    args = checked("verify", "--drive", "S1", "--celsius", "25", "--hours", "100", "--passes", "2")
    sets = {"celsius": "25.0", "hours": "100.0", "passes": "2"}
    assert args.plan == "retention-verify" and options.parameters(args) == (None, sets)
    assert options.parameters(checked("write", "--virtual", "sata-tlc"))[0] == "quick"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("read",),
        ("write", "--celsius", "25"),
        ("verify", "--wear-to", "50"),
        ("write", "--wear-to", "101"),
        ("verify", "--kept", "/nowhere"),
    ],
)
def test_what_does_not_fit_is_refused(words):
    with pytest.raises(UsageError):
        checked(*words, "--drive", "S1")


def test_a_drive_that_was_not_kept_is_refused(tmp_path):
    with pytest.raises(UsageError, match="was kept"):
        checked("verify", "--virtual", "sata-tlc", "--kept", str(tmp_path))


def of(plan: str, **sets) -> prepare.Prepared:
    return prepare.prepare(plan, DRIVE, None, sets, capabilities=prepare.REAL)


def test_writing_asks_for_consent_and_verifying_does_not():
    write, verify = of("retention-write"), of("retention-verify", celsius="25")
    assert keeping.writes(write.acts) and not keeping.writes(verify.acts)
    assert [act.not_run for act in write.acts] == ["no wear is asked for", None]
    assert 1.19 * DRIVE["capacity_bytes"] <= write.cost.most_bytes <= 1.21 * DRIVE["capacity_bytes"]
    assert verify.cost.most_bytes == 0 < verify.cost.time_s[0]
    half = of("retention-write", wear="50")
    assert half.acts[0].amount_bytes == DRIVE["rated_write_bytes"] // 2  # no more, also where the drive counts nothing
    lines: list[str] = []
    keeping.describe(of("retention-write", wear="50").acts, lines.append)
    assert "JESD218" in lines[0]
    with pytest.raises(UsageError, match="`storage` or `celsius`"):
        of("retention-verify", celsius="25", storage="log.csv")
    with pytest.raises(UsageError, match="a number for celsius"):
        of("retention-verify", celsius="warm")


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "too long", "missing"])
def test_manifest_and_log_of_another_place_are_files_of_their_size(tmp_path, what):
    """A manifest may come with a run folder that was received: a pipe would be waited for, a device never ends."""
    for name in ("manifest.json", "storage.log"):
        path = tmp_path / name
        make = {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: path.symlink_to("/dev/zero")}
        if what == "too long":
            path.touch()
            os.truncate(path, 10 << 30)
        elif what in make:
            make[what](path)
    with pytest.raises(UsageError):
        verifying.given_file({"manifest": str(tmp_path / "manifest.json")})
    with pytest.raises(UsageError):
        verifying.given_log({"storage": str(tmp_path / "storage.log")}, None)
