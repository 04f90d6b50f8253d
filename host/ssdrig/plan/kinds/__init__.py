"""The kinds of step that a plan is made of, one module each: what it may say (KEYS), what of these ends it (ENDS, one
of them exactly), what the bench must be able to do (NEEDS); how it is carried out is in run/engine.py."""

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
    retain,
    set,
    settle,
    trim,
    wear,
)

KINDS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        *(purge, fill, load, replay, repeat, choose, idle, settle, flush, trim, set, ask, wear, cuts),
        *(retain, recall, record),
    )
}
FIO = ("fill", "load")  # carried out by fio
IO = (*FIO, "replay", "record")
