"""One load in every format that is read: the same I/Os, bytes, times, depths and service times come out of each."""

import random

import numpy as np
import pytest
from trace_writers import WRITERS, Io

from ssdrig.base.columns import chosen
from ssdrig.load import trace_convert, trace_tables, traceform
from ssdrig.load.traceform import READ, WRITE


def load(seed: int, n: int = 300) -> list[Io]:
    rng = random.Random(seed)
    begins = sorted(rng.sample(range(1, 30 * n), n))
    places = rng.sample(range(10**7), n)  # no two I/Os overlap: none is longer than from one place to the next
    return [
        Io(
            10 * begin,
            10 * begin + 10 * rng.choice([3, 9, 40, 700]),
            rng.choice([READ, WRITE]),
            (1 << 20) * place,
            512 * rng.choice([1, 8, 64, 2048]),
        )
        for begin, place in zip(begins, places, strict=True)
    ]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_load_comes_out_of_every_format(tmp_path, name, seed):
    writer, map_, has_ends, step_us = WRITERS[name]
    ios, path = load(seed), tmp_path / "source"
    text = writer(ios)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    columns = chosen([map_], trace_tables.ROLES) if map_ else {}
    made = trace_convert.Conversion(path, trace_convert.Asked(columns=columns))
    rows, words = np.concatenate(list(made.windows())), made.words()
    assert traceform.why_not(rows) is None and not words["left_out"] and not rows["flags"].any()

    first_us = ios[0].begin_us // step_us * step_us
    expected = [(1000 * (io.begin_us // step_us * step_us - first_us), io.offset, io.size, io.op) for io in ios]
    assert rows[["t_ns", "offset_bytes", "length_bytes", "op"]].tolist() == expected
    written = sum(io.size for io in ios if io.op == WRITE)
    assert int(rows["length_bytes"][rows["op"] == WRITE].sum()) == written
    assert (words["step_ns"] or 1) >= (10**9 if step_us == 10**6 else 1)

    assert bool(words["depths"]) == has_ends
    if has_ends:
        depths = [sum(io.begin_us <= own.begin_us < io.end_us for io in ios) for own in ios]
        assert rows["depth"].tolist() == depths and max(depths) > 10
        for side, op in (("reads", READ), ("writes", WRITE)):
            lasts_us = [io.end_us - io.begin_us for io in ios if io.op == op]
            service = words["service"][side]
            assert service["ios"] == len(lasts_us) and service["max_us"] == max(lasts_us)
            assert service["mean_us"] == pytest.approx(np.mean(lasts_us))
    else:
        assert words["service"] is None


def test_ten_formats_and_more_are_written_here():
    assert len(WRITERS) >= 25 and sum(has_ends for _, _, has_ends, _ in WRITERS.values()) >= 12
