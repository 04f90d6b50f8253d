"""How each kind of step is carried out, a module a kind: carry_out(act, stage, number) gives what its event says;
before(act, stage) and after(act, stage, first, shown) where SMART or a trace is needed around the step. What a step may
say is in plan/kinds/."""

from types import ModuleType

from ssdrig.run.steps import (
    ask,
    choose,
    cuts,
    fill,
    flush,
    idle,
    load,
    purge,
    recall,
    replay,
    retain,
    set,
    settle,
    trim,
    wear,
)

STEPS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        *(ask, choose, cuts, fill, flush, idle, load, purge, recall, replay, retain, set, settle, trim, wear),
    )
}
