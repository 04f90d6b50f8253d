"""What zygote.Forked starts is like what subprocess.Popen starts."""

import json
import os
import signal
import tempfile

import pytest
import zygote

SAYS = """
import json, os, time

def main(words):
    os.umask(mask := os.umask(0))
    print(json.dumps([words, os.getcwd(), mask, os.environ.get("OF_THE_TEST")]), flush=True)
    time.sleep(100)
"""


@pytest.fixture
def forked(tmp_path, monkeypatch):
    """forked(words) -> one of a program of this test's own; ended with the process that forks it."""
    program = f"says_{tmp_path.name}"
    (tmp_path / f"{program}.py").write_text(SAYS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ['PYTHONPATH']}")
    started = []

    def start(words, name=program):
        with tempfile.TemporaryFile() as err:
            started.append(zygote.Forked(words, err, name))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(200)
        process.stdout.close()
    if program in zygote._running:
        process, ours = zygote._running.pop(program)
        ours.close()
        process.wait(200)


def test_it_has_the_tests_folder_mask_and_environment_and_not_an_earlier_ones(forked, tmp_path, monkeypatch):
    folder = os.getcwd()
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setenv("OF_THE_TEST", "first")
        before = os.umask(0o77)
        try:
            assert json.loads(forked(["a"]).stdout.readline()) == [["a"], str(tmp_path), 0o77, "first"]
        finally:
            os.umask(before)
    assert json.loads(forked(["b"]).stdout.readline()) == [["b"], folder, before, None]


def test_without_the_process_that_forks_it_has_been_killed(forked, tmp_path):
    one = forked([])
    assert one.stdout.readline()
    forks, _ = zygote._running[f"says_{tmp_path.name}"]
    forks.kill()
    forks.wait(200)  # until then it takes what is asked of it, and never answers
    one.send_signal(signal.SIGTERM)
    assert one.wait(200) in (-signal.SIGKILL, -signal.SIGTERM)
    assert forked(["again"]).stdout.readline()


@pytest.mark.parametrize(
    "words, program, error", [([], "no_such_program", RuntimeError), (["x" * (1 << 22)], "says_much", OSError)]
)
def test_what_cannot_be_forked_is_one_error_and_leaves_nothing_open(forked, words, program, error):
    held = len(os.listdir("/proc/self/fd"))
    with pytest.raises(error):
        forked(words, program)
    if program in zygote._running:
        process, ours = zygote._running.pop(program)
        ours.close()
        process.wait(200)
    assert len(os.listdir("/proc/self/fd")) == held


def test_those_of_a_test_are_ended_and_no_others(forked, monkeypatch):
    processes = {}
    for by in ("a (call)", "a (setup)", "b (call)"):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", by)
        processes[by] = forked([])
    zygote.end_those_of("a")
    assert processes["a (call)"].wait(200) == -signal.SIGKILL
    assert processes["a (setup)"].poll() is None and processes["b (call)"].poll() is None
