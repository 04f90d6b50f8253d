"""The samples of a run folder as tables of the kind `sample`, a stretch at a time, at any length of the run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdrig.base.errors import RigError
from ssdrig.base.utc import Utc
from ssdrig.meter import pairing, power, reduced, samples
from ssdrig.meter.pieces import Piece, Stream
from ssdrig.meter.reduced import Heads
from ssdrig.publish.lake import schema
from ssdrig.publish.lake.rows import Part

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = 1 << 20  # rows of a row group: 12 minutes at 1400 samples a second


def heads_of(part: Part) -> Heads | None:
    """What the samples of a part are read by; None: it has none, or none of this drive."""
    if part.header.get("rig") is None or pairing.unpaired(part.events):
        return None
    try:
        return reduced.heads(part.folder)
    except RigError:
        return None


def rails(heads: Heads) -> list[tuple[int, str]]:
    """Numbers and names of the rails that have samples."""
    decoder = heads[0]
    numbers = [rail for rail in samples.rails_of(decoder) if decoder.frames(rail).n.any()]
    return [(rail, decoder.rail_names().get(rail, "") or str(rail)) for rail in numbers]


def tables(part: Path, rail: int, heads: Heads, utc: Utc, same: Mapping[str, Any]) -> Iterator["pa.Table"]:
    """The samples of one rail of a part, in order, GROUP rows at a time; `same`: the columns that are the same in all.
    Raises RigError where rig.bin cannot be read to its end."""
    held: list[dict[str, np.ndarray]] = []
    rows = 0
    for piece in pieces(part, rail, heads):
        held.append(piece)
        rows += len(piece["t_ns"])
        if rows >= GROUP:
            joined = _joined(held)
            yield _table({name: values[:GROUP] for name, values in joined.items()}, utc, same)
            held, rows = [{name: values[GROUP:] for name, values in joined.items()}], rows - GROUP
    if rows:
        yield _table(_joined(held), utc, same)


def pieces(part: Path, rail: int, heads: Heads) -> Iterator[dict[str, np.ndarray]]:
    """columns() of one rail of a part, in order. Raises RigError where rig.bin cannot be read to its end."""
    decoder, _, clocks = heads
    with open(part / "rig.bin", "rb") as file:
        stream = Stream(file.fileno(), decoder, rail)
        stream.fit(clocks)
        yield from map(columns, stream.pieces())


def columns(piece: Piece) -> dict[str, np.ndarray]:
    """t_ns, dt_ns (int64), V, I (float32) of each sample, and of the gap before it lost, gap_ns (int64) and gap_J
    (float64), 0 without a gap. V x I x dt_ns and gap_J add up to the running energy of the piece."""
    n = len(piece.t_us)
    V, I = np.empty(n), np.empty(n)  # noqa: E741
    power.convert(piece.facts, piece.vbus, piece.current, V, I)
    out = {"t_ns": piece.t_ns[1:], "dt_ns": np.diff(piece.t_ns), "V": V.astype(np.float32), "I": I.astype(np.float32)}
    out |= {"lost": np.zeros(n, np.int64), "gap_ns": np.zeros(n, np.int64), "gap_J": np.zeros(n)}
    at = piece.gaps.at - piece.number
    out["lost"][at], out["gap_ns"][at], out["gap_J"][at] = piece.gaps.lost, piece.gaps.ns, piece.gaps.J
    out["dt_ns"][at] = np.maximum(out["dt_ns"][at] - piece.gaps.ns, 0)
    if piece.number == 0 and len(at) and at[0] == 0:  # the first sample represents its own time
        out["dt_ns"][0] = piece.t_ns[1] - piece.t_ns[0]
    if out["dt_ns"].max(initial=0) > np.iinfo(np.int32).max:
        raise RigError("samples, or recorded gaps between them", "2 s without either", "report the run")
    return out


def _joined(held: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([chunk[name] for chunk in held]) for name in held[0]}


def _table(values: Mapping[str, np.ndarray], utc: Utc, same: Mapping[str, Any]) -> "pa.Table":
    import pyarrow as pa

    n, of, arrays = len(values["t_ns"]), schema.of("sample"), []
    no_gap = values["gap_ns"] + values["lost"] == 0
    for field in of:
        if field.name in same:
            arrays.append(constant(field, same[field.name], n))
        elif field.name == "t_utc":
            arrays.append(pa.array(utc.at_all(values["t_ns"]) // 1000, field.type))
        else:
            mask = no_gap if field.name in ("lost", "gap_ns", "gap_J") else None
            arrays.append(pa.array(values[field.name], field.type, mask=mask))
    return pa.Table.from_arrays(arrays, schema=of)


def constant(field: "pa.Field", value: Any, n: int) -> "pa.Array":
    """n times the same value, which may be None."""
    import pyarrow as pa

    if value is None:
        return pa.nulls(n, field.type)
    if pa.types.is_dictionary(field.type):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([value], pa.string()))
    return pa.repeat(pa.scalar(value, field.type), n)
