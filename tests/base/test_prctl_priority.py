"""What a thread that keeps time gets of a busy CPU, and that it says what it got."""

import os
import threading

import pytest

from ssdrig.base import prctl


def in_thread(ask) -> dict:
    found = {}

    def run():
        found["words"] = ask()
        me = threading.get_native_id()
        found.update(scheduler=os.sched_getscheduler(0), nice=os.getpriority(os.PRIO_PROCESS, me))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found


@pytest.mark.parametrize("ask", [prctl.urgent, prctl.favoured])
def test_words_are_what_the_kernel_says(ask):
    found = in_thread(ask)
    if found["scheduler"] == os.SCHED_FIFO:
        assert found["words"] == "real time (SCHED_FIFO 1)" and ask is prctl.urgent
    else:
        assert found["words"] == f"nice {found['nice']}"


def test_others_keep_what_they_have():
    before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    in_thread(prctl.urgent)
    assert (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


def test_on_a_single_cpu_nothing_runs_before_all_others():
    allowed = os.sched_getaffinity(0)

    def ask():
        os.sched_setaffinity(0, {min(allowed)})
        return prctl.urgent()

    found = in_thread(ask)
    assert found["scheduler"] == os.SCHED_OTHER and found["words"] == f"nice {found['nice']}"
