"""drive/smartctl.py with a fake smartctl that does what real ones do, and with the real one where it is installed."""

import json
import shutil
import time
from pathlib import Path

import pytest
from fake_tools import Tools, answer_of_smartctl
from hypothesis import given, settings
from hypothesis import strategies as st
from looking import time_begins_with
from loop_device import loop_device

from ssdrig.base.errors import ToolMissing
from ssdrig.drive.smart import smart_answer, smartctl


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Tools:
    return Tools(tmp_path / "bin", monkeypatch)


def test_asks_for_json_with_exact_integers_and_the_type(tools):
    tools.smartctl(answer_of_smartctl(model_name="X"))
    answer = smartctl.run("/dev/sdz", "sat", smartctl.LIGHT, 10)
    assert tools.calls() == ["smartctl --json=cv -i -A -H -d sat /dev/sdz"]
    assert answer.argv == ["smartctl", "--json=cv", "-i", "-A", "-H", "-d", "sat", "/dev/sdz"]
    assert (answer.exit_code, answer.why, answer.text) == (0, None, None) and answer.document["model_name"] == "X"


@pytest.mark.parametrize("bit", range(8))
def test_each_exit_bit_comes_with_its_document(tools, bit):
    """smartctl(8): bits 0 and 1 mean that there is no data, all others come with valid JSON."""
    tools.smartctl(answer_of_smartctl(1 << bit, model_name="X"), 1 << bit)
    answer = smartctl.run("/dev/sdz", "sat", smartctl.FULL, 10)
    assert answer.exit_code == 1 << bit and answer.why is None and answer.document["model_name"] == "X"
    assert smartctl.bits(answer.exit_code) == [bit] and smartctl.EXIT_BITS[bit]
    assert smart_answer.has_data(answer.document) == (bit >= 2)


def test_bits_of_several():
    assert smartctl.bits(0) == [] and smartctl.bits(0b11000100) == [2, 6, 7] and smartctl.bits(255) == list(range(8))


def test_hang_is_killed_with_its_children_and_recorded(tools, monkeypatch):
    """Its half of a second begins where it hangs: on a busy machine a shell may take longer to come to that."""
    tools.put("smartctl", "echo '{\"half\":'\nsleep 300 &\necho $! > new; mv new child\nwait")
    time_begins_with(tools.folder / "child", monkeypatch)
    answer = smartctl.run("/dev/sdz", "sat", smartctl.FULL, 0.5)
    assert answer.exit_code is None and answer.document is None and answer.text == '{"half":\n'
    assert "had not ended after 0.5 s" in answer.why
    child = Path("/proc") / (tools.folder / "child").read_text().strip()
    deadline = time.monotonic() + 600
    while child.exists() and "(sleep) Z" not in (child / "stat").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.exists() or "(sleep) Z" in (child / "stat").read_text()


@pytest.mark.parametrize(
    "printed, words",
    [
        (b"", "printed nothing"),
        (b" \n", "printed nothing"),
        (b"Segmentation fault\n", "no JSON"),
        (b"[1, 2]", "not an object but list"),
        (b'{"smartctl": {"exit_status": 0}, "model', "no JSON"),
        (b'{"a": "\xff\xfe"}', "no JSON"),
        (b'{"a": NaN}', "no JSON"),
        (b'{"a": 1e999}', "no JSON"),
        (b'{"a": "\\ud800"}', "no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no JSON"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "no JSON"),
    ],
)
def test_what_is_no_json_object_is_kept_as_text_and_said(tools, printed, words):
    tools.smartctl(printed, 4)
    answer = smartctl.run("/dev/sdz", "sat", smartctl.FULL, 20)
    assert answer.document is None and words in answer.why and answer.exit_code == 4
    whole = printed[: smartctl.TEXT_KEPT].decode(errors="backslashreplace")
    assert answer.text == whole
    json.dumps(vars(answer), ensure_ascii=False).encode()  # can be kept


def test_100_MB_are_not_read(tools):
    tools.put("smartctl", "head -c 100000000 /dev/zero")
    answer = smartctl.run("/dev/sdz", "sat", smartctl.FULL, 60)
    assert answer.document is None and answer.exit_code is None and "more than 16777216 bytes" in answer.why
    assert len(answer.text) == smartctl.TEXT_KEPT and "262144 of its 16777216 bytes are kept" in answer.why


def test_missing_or_not_executable_is_tool_missing(tools, monkeypatch):
    monkeypatch.setenv("PATH", str(tools.folder))
    with pytest.raises(ToolMissing, match="smartmontools"):
        smartctl.run("/dev/sdz", "sat", smartctl.FULL, 10)
    tools.put("smartctl", "exit 0", mode=0o644)
    with pytest.raises(ToolMissing, match="smartmontools"):
        smartctl.run("/dev/sdz", "sat", smartctl.FULL, 10)


def test_smartctl_before_7_is_too_old(tools):
    """What 6.6 prints for an option that it does not know."""
    tools.smartctl(
        b"smartctl 6.6 2017-11-05 r4594 [x86_64-linux-5.0.0] (local build)\nCopyright (C) 2002-17, Bruce Allen,"
        b" Christian Franke\n\n=======> UNRECOGNIZED OPTION: json=cv\n\nUse smartctl -h to get a usage summary\n\n",
        1,
    )
    with pytest.raises(ToolMissing, match=r"seen smartctl 6\.6"):
        smartctl.run("/dev/sdz", "sat", smartctl.FULL, 10)


def test_a_version_of_the_wrong_type_is_no_reason_to_stop(tools):
    tools.smartctl({"smartctl": {"version": "7.3", "exit_status": 0}})
    assert smartctl.run("/dev/sdz", "sat", smartctl.FULL, 10).document["smartctl"] == {
        "version": "7.3",
        "exit_status": 0,
    }


# smartctl 7.3 knows neither the bridge nor, with a wrong -d, the drive. Its "Please specify device type with the -d
# option." is on the screen only: with --json the first line alone is in messages.
UNKNOWN = {"messages": [{"string": "/dev/sdz: Unknown USB bridge [0x0bda:0x9210 (0xf200)]", "severity": "error"}]}


def bridge(tools: Tools, speaks: str) -> None:
    """A smartctl whose drive answers to `-d speaks` only."""
    unknown = answer_of_smartctl(1)
    unknown["smartctl"] |= UNKNOWN
    (tools.folder / "auto.json").write_text(json.dumps(unknown))
    (tools.folder / "wrong.json").write_text(json.dumps(answer_of_smartctl(2)))
    (tools.folder / "right.json").write_text(json.dumps(answer_of_smartctl(model_name="INNER")))
    tools.put(
        "smartctl",
        f'case "$*" in *"-d auto "*) cat auto.json; exit 1;; *"-d {speaks} "*) cat right.json;; *) cat wrong.json; exit'
        " 2;; esac",
    )


@pytest.mark.parametrize(
    "usb_id, speaks, tried",
    [
        ("152d:0583", "sntjmicron", ["auto", "sntjmicron"]),
        ("152D:0583", "sat", ["auto", "sntjmicron", "sat"]),
        ("0bda:9210", "sntrealtek", ["auto", "sntrealtek"]),
        ("174c:2362", "sntasmedia", ["auto", "sntasmedia"]),
        ("1234:5678", "sat", ["auto", "sat"]),
        ("1234:5678", "sntrealtek", ["auto", "sat", "sntasmedia", "sntrealtek"]),
    ],
)
def test_usb_bridges_are_asked_in_the_words_of_their_maker(tools, usb_id, speaks, tried):
    bridge(tools, speaks)
    answer, used, answers = smartctl.run_any("/dev/sdz", "auto", usb_id, smartctl.FULL, 20)
    assert answer.document["model_name"] == "INNER" and used == speaks
    assert [a.argv[-2] for a in answers] == tried


def test_a_bridge_that_answers_to_nothing_gives_the_first_words(tools):
    bridge(tools, "none")
    answer, used, answers = smartctl.run_any("/dev/sdz", "auto", "0bda:9210", smartctl.FULL, 20)
    assert (
        used == "auto"
        and len(answers) == 3
        and smart_answer.messages(answer.document) == ["/dev/sdz: Unknown USB bridge [0x0bda:0x9210 (0xf200)]"]
    )


def test_no_other_type_is_tried_without_usb_or_after_a_hang(tools):
    bridge(tools, "sat")
    assert len(smartctl.run_any("/dev/sdz", "auto", "", smartctl.FULL, 20)[2]) == 1
    tools.put("smartctl", "sleep 300")
    assert len(smartctl.run_any("/dev/sdz", "auto", "0bda:9210", smartctl.FULL, 0.3)[2]) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["smartctl", "exit_status", "messages", "string", "version"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(json_values)
def test_any_document_can_be_asked(document):
    assert type(smart_answer.has_data(document)) is bool
    assert all(isinstance(words, str) for words in smart_answer.messages(document))
    if isinstance(document, dict):
        version = smartctl._version(document, None)
        assert version is None or (type(version[0]) is int and type(version[1]) is int)


def real() -> None:
    if not shutil.which("smartctl"):
        pytest.skip("smartctl is not installed")


def test_real_smartctl_on_what_is_no_drive():
    """7.3: exit 1, "Unable to detect device type" in valid JSON."""
    real()
    answer = smartctl.run("/dev/null", "auto", smartctl.FULL, 30)
    assert answer.exit_code == 1 and answer.why is None and answer.cpu_ms > 0
    assert smart_answer.messages(answer.document) == ["/dev/null: Unable to detect device type"]
    assert not smart_answer.has_data(answer.document) and smartctl.bits(answer.exit_code) == [0]


@pytest.mark.parametrize("words", [smartctl.FULL, smartctl.LIGHT, smartctl.LIGHT + smartctl.DEVICE_STATISTICS])
def test_real_smartctl_understands_each_command_line(words):
    """With a wrong type it gets past its options (bit 0 clear) and fails to open (bit 1)."""
    real()
    answer = smartctl.run("/dev/null", "sat", words, 30)
    assert smartctl.bits(answer.exit_code) == [1] and not smart_answer.has_data(answer.document)


def test_real_smartctl_on_a_loop_device(tmp_path):
    real()
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with loop_device(image) as node:
        answer = smartctl.run(node, "auto", smartctl.FULL, 30)
    assert answer.exit_code == 1 and smart_answer.messages(answer.document) == [f"{node}: Unable to detect device type"]
