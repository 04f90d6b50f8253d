"""What a thread that keeps time gets of a busy CPU, and that it says what it got."""

import os
import threading

import pytest

from ssdrig.base import prctl


def in_thread(ask) -> dict:
    result = {}

    def run():
        result["words"] = ask()
        me = threading.get_native_id()
        result.update(scheduler=os.sched_getscheduler(0), nice=os.getpriority(os.PRIO_PROCESS, me))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result


@pytest.mark.parametrize("ask", [prctl.urgent, prctl.favoured])
def test_words_are_what_the_kernel_says(ask):
    answer = in_thread(ask)
    if answer["scheduler"] == os.SCHED_FIFO:
        assert answer["words"] == "real time (SCHED_FIFO 1)" and ask is prctl.urgent
    else:
        assert answer["words"] == f"nice {answer['nice']}"


def test_others_keep_what_they_have():
    before = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    in_thread(prctl.urgent)
    assert (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)) == before


def test_on_a_single_cpu_nothing_runs_before_all_others():
    allowed = os.sched_getaffinity(0)

    def ask():
        os.sched_setaffinity(0, {min(allowed)})
        return prctl.urgent()

    answer = in_thread(ask)
    assert answer["scheduler"] == os.SCHED_OTHER and answer["words"] == f"nice {answer['nice']}"
