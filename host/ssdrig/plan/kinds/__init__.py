"""The kinds of step that a plan is made of, one module each: its keys (KEYS), the keys that end it (ENDS, exactly one
of them), the required abilities of the bench (NEEDS); run/engine.py runs it."""

from types import ModuleType

from ssdrig.plan.kinds import (
    ask,
    choose,
    cuts,
    fill,
    flush,
    idle,
    load,
    purge,
    recall,
    record,
    repeat,
    replay,
    reset,
    retain,
    set,
    settle,
    trim,
    wear,
)

KINDS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        *(purge, fill, load, replay, repeat, choose, idle, settle, flush, trim, reset, set, ask, wear, cuts),
        *(retain, recall, record),
    )
}
FIO = ("fill", "load")  # run by fio
IO = (*FIO, "replay", "record")
