"""Loads by placement handle, and drives that lack them."""

import pytest
from small_plans import DRIVE, HEAD

from ssdrig.base.errors import UsageError
from ssdrig.load import ceiling, fiojob
from ssdrig.plan import expand, grammar, kinds
from ssdrig.run import prepare

CAN = frozenset({"purge", "fdp"})
PLACED = {**DRIVE, "interface": "NVMe", "placement_handles": [0, 1, 2]}
LOAD = '[[step]]\nname = "load"\ndo = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\ntime = "5 s"\n'
HOT = "hot = [[80, 25], [20, 75]]\n"


def shipped(drive=PLACED, can=CAN, variant=None):
    return expand.expand(grammar.read(*grammar.find("placement"), variant), drive, can)


def job(act):
    return kinds.KINDS["load"].job(act, "/proc/1/fd/5", 1, 1, "NVMe")


def test_placed_writes_have_an_engine_of_their_own_and_a_scheme():
    together, apart, *rest = (job(act) for act in shipped() if act.do == "load")
    assert [one.handles for one in (together, apart, *rest)] == [(0,), (0, 1), (0,), (1,)]
    size = together.size_bytes
    assert fiojob.scheme(together) == f"0,{size},0\n"
    assert fiojob.scheme(apart) == f"0,{size // 5},0\n{size // 5},{size},1\n"
    for one in (together, apart):
        options = fiojob.job_file(one).splitlines()
        assert {"ioengine=io_uring_cmd", "dataplacement=fdp", "dp_scheme=placement.csv"} <= set(options)
        assert not {"direct=1", "ioengine=libaio"} & set(options)


def test_a_load_without_handles_is_written_as_ever():
    acts = expand.expand(grammar.read(HEAD + LOAD), DRIVE, CAN)
    assert "io_uring_cmd" not in fiojob.job_file(job(acts[0]))


def test_ceiling_of_a_placed_load_is_of_a_null_target():
    load = next(act for act in shipped() if act.do == "load")
    (shape,) = ceiling.shapes("load", load.keys)
    assert "dataplacement" not in fiojob.job_file(ceiling.job(shape, False))


def test_a_drive_without_placement_is_refused_with_what_it_lacks():
    with pytest.raises(expand.Lacking) as error:
        shipped(DRIVE, CAN - {"fdp"})
    assert error.value.needs == ("fdp",) and error.value.exit_code == 2


def test_a_virtual_drive_is_refused():
    with pytest.raises(expand.Lacking) as error:
        prepare.prepare("placement", DRIVE, capabilities=prepare.of_virtual("nvme-tlc"))
    assert error.value.needs == ("fdp",)


def test_a_handle_that_the_namespace_lacks_is_not_run():
    acts = {act.label: act for act in shipped({**PLACED, "placement_handles": [0]}) if act.do == "load"}
    assert not acts["together"].not_run and not acts["each/write handle=0"].not_run
    assert "0" in acts["apart"].not_run and "0" in acts["each/write handle=1"].not_run


@pytest.mark.parametrize(
    "more",
    [
        'handles = "hot"\n',
        'handle = 0\nhandles = "hot"\n' + HOT,
        'handle = 0\nsync = "flush"\n',
        'handle = 0\nengine = "libaio"\n',
        "handle = 0\nrate = '9 IOPS'\nread_qd = 1\n",
        "handle = -1\n",
        'handles = "all"\n' + HOT,
    ],
)
def test_what_cannot_be_placed_is_refused(more):
    with pytest.raises(UsageError) as error:
        grammar.read(HEAD + LOAD + more)
    assert not isinstance(error.value, expand.Lacking)


@pytest.mark.parametrize("more", [{"target": "nbd+unix:///?socket=x"}, {"sync": "each"}, {"handles": (0, 1)}])
def test_a_job_that_fio_would_refuse_is_refused(more):
    known = {"name": "a", "rw": "randwrite", "block_bytes": 4096, "queue_depth": 1, "size_bytes": 1 << 20}
    with pytest.raises(UsageError):
        fiojob.job_file(fiojob.Job(**{**known, "target": "/dev/ng0n1", "handles": (0,), **more}))
