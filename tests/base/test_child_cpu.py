"""Waits that count a child's CPU time instead of the time on the wall."""

import os
import subprocess
import sys
import time

import pytest

from ssdrig.base import child_cpu
from ssdrig.base.child_cpu import NotReady, cpu_s, output, wait_while_working

BURN = "import time\nwhile time.process_time() < {}: pass\n"


@pytest.fixture
def child():
    """Starts Python on a text; kills what is left."""
    children = []

    def start(text: str) -> subprocess.Popen:
        children.append(subprocess.Popen([sys.executable, "-c", text]))
        return children[-1]

    yield start
    for process in children:
        process.kill()
        process.wait()


def test_cpu_time_of_a_process_grows_while_it_computes(child):
    process = child(BURN.format(60))
    seen = wait_while_working(process, lambda: (s := cpu_s(process.pid)) > 0.3 and s or None)
    assert seen > 0.3


def test_cpu_time_includes_children_that_live_and_that_ended(child):
    text = "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, '-c', {!r}])\ninput()"
    process = child(text.format(BURN.format(0.4)))
    seen = wait_while_working(process, lambda: (s := cpu_s(process.pid)) > 0.7 and s or None)
    assert seen > 0.7


def test_cpu_time_of_no_process_is_zero():
    assert cpu_s(2**22 + 1) == 0


def test_a_child_that_computes_is_waited_for_beyond_the_idle_limit(child):
    begun = time.monotonic()
    process = child(BURN.format(1.5))
    with pytest.raises(NotReady) as raised:
        wait_while_working(process, lambda: None, idle_s=1.0)
    assert raised.value.kind == "ended"
    assert time.monotonic() - begun > 1.4


def test_a_child_that_sleeps_is_stuck_after_the_idle_limit(child):
    process = child("import time; time.sleep(600)")
    with pytest.raises(NotReady) as raised:
        wait_while_working(process, lambda: None, idle_s=1.0)
    assert raised.value.kind == "idle"
    assert process.poll() is None


def test_a_childs_end_is_reported_with_its_code_or_signal(child):
    for text, code in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)):
        with pytest.raises(NotReady) as raised:
            wait_while_working(child(text), lambda: None)
        assert raised.value.kind == "ended" and str(abs(code)) in raised.value.reason


def test_what_a_child_left_before_its_end_is_taken(child):
    process = child("pass")
    process.wait()
    assert wait_while_working(process, lambda: "there") == "there"


def test_a_child_that_computes_for_ever_is_given_up_at_its_cpu_limit(child):
    with pytest.raises(NotReady) as raised:
        wait_while_working(child(BURN.format(60)), lambda: None, most_cpu_s=0.5)
    assert raised.value.kind == "limit" and raised.value.cpu_s > 0.5


def test_other_signs_of_work_postpone_the_idle_limit(child):
    process, begun = child("import time; time.sleep(600)"), time.monotonic()
    with pytest.raises(NotReady):
        wait_while_working(
            process,
            lambda: None,
            idle_s=1.0,
            progress=lambda work: work.works() if time.monotonic() - begun < 1.5 else None,
        )
    assert time.monotonic() - begun > 2.4


def test_what_progress_raises_ends_the_wait(child):
    def stop(work):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait_while_working(child("import time; time.sleep(600)"), lambda: None, progress=stop)


def test_the_idle_limit_leaves_room_for_a_message_within_a_minute():
    assert child_cpu.IDLE_S + 10 < 60


def test_the_output_of_a_program_is_returned_with_its_code():
    done = output([sys.executable, "-c", "import sys; print('a' * 100_000); print('b', file=sys.stderr); sys.exit(3)"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "a" * 100_000 + "\n", "b\n")


def test_a_program_that_does_nothing_is_killed():
    with pytest.raises(NotReady) as raised:
        output([sys.executable, "-c", "import time; time.sleep(600)"], idle_s=0.5)
    assert raised.value.kind == "idle"


def test_a_child_that_gets_no_cpu_is_starved_and_not_stuck(child, monkeypatch):
    process, begun = child("import time; time.sleep(600)"), time.monotonic()
    monkeypatch.setattr(child_cpu, "queued_s", lambda pid: 0.9 * (time.monotonic() - begun))
    work = child_cpu.Work(process.pid, idle_s=0.1)
    for _ in range(5):
        time.sleep(0.15)
        assert work.look()
    monkeypatch.setattr(child_cpu, "queued_s", lambda pid: 1.0)
    work.works()
    time.sleep(0.15)
    assert not work.look()


def test_time_in_the_queue_for_a_cpu_is_the_kernels(child):
    cpu = min(os.sched_getaffinity(0))
    pinned = f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
    first, _ = child(pinned + BURN.format(60)), child(pinned + BURN.format(60))
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("this kernel does not count the time in the queue")
    seen = wait_while_working(first, lambda: (s := child_cpu.queued_s(first.pid)) > 0.2 and s or None)
    assert seen > 0.2
