"""A run folder as NumPy arrays, for Python programs and notebooks: what `ssdrig.open` returns.

Columns, units and meanings are those of the lake (schemas/lake.toml), made by the same code. Nothing is read before it
is asked for, and nothing is read twice."""

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdrig.publish.lake import needs, sampling, schema
from ssdrig.publish.lake import rows as lake_rows
from ssdrig.publish.lake import seconds as lake_seconds
from ssdrig.reading import table
from ssdrig.runs import named, parts

if TYPE_CHECKING:
    import pyarrow as pa

    from ssdrig.reading.row import Table

OF_LAKE = {"run", "export", "drive"}  # columns that are the same in all rows of a run
# of `rows`: a step that was executed
STEP_TYPES = {
    **dict.fromkeys(("step", "do"), "text"),
    **{"round": "i64", "point": "long", "part": "i32", "state": "text", "why": "long"},
    **{"t_utc": "utc", "t_ns": "i64", "t0_s": "f64", "t1_s": "f64", "notes": "texts"},
}
DTYPES: Mapping[str, Any] = {
    **{"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64, "bool": np.bool_},
    "utc": np.dtype("datetime64[us]"),
    **dict.fromkeys(("text", "long", "texts"), object),
}


class Columns(Mapping[str, np.ndarray]):
    """Columns of equal length by name, in the order of the schema.

    Floats are NaN where a value is not known, times NaT, texts None; integers and booleans are masked arrays
    (numpy.ma). `len()` counts columns, `.length` rows."""

    def __init__(self, types: Mapping[str, str], arrays: Mapping[str, np.ndarray], length: int):
        self.types = dict(types)
        self.length = length
        self._arrays = {name: arrays[name] for name in types}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Columns({self.length} rows: {', '.join(self)})"

    def where(self, **values: Any) -> "Columns":
        """The rows with these values, such as `where(window_name="all")`. Raises KeyError for a column it lacks."""
        chosen = np.ones(self.length, bool)
        for name, value in values.items():
            chosen &= np.ma.filled(self[name] == value, False)
        return Columns(self.types, {name: array[chosen] for name, array in self.items()}, int(chosen.sum()))

    def arrow(self) -> "pa.Table":
        """The same as an Arrow table, from which pandas, Polars and DuckDB read. Raises ToolMissing without pyarrow."""
        pa = needs("pyarrow")
        types = {
            **{"i32": pa.int32(), "i64": pa.int64(), "f32": pa.float32(), "f64": pa.float64(), "bool": pa.bool_()},
            **{"utc": pa.timestamp("us", "UTC"), "texts": pa.list_(pa.string())},
            **dict.fromkeys(("text", "long"), pa.string()),
        }
        arrays = []
        for name, array in self.items():
            of = types[self.types[name]]
            if array.dtype == object:
                arrays.append(pa.array(array.tolist(), of))
                continue
            unknown = (
                np.isnat(array) if array.dtype.kind == "M" else np.isnan(array) if array.dtype.kind == "f" else None
            )
            unknown = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else unknown
            values = np.ma.getdata(array)
            arrays.append(pa.array(values.view(np.int64) if array.dtype.kind == "M" else values, of, mask=unknown))
        return pa.Table.from_arrays(arrays, names=list(self))


class Run:
    """A run folder, opened. Each table is made when it is first asked for.

    path: the run folder, of a run of several parts the first
    header: run.json"""

    def __init__(self, run: str | os.PathLike[str]):
        """run: the folder, or `latest` or an id of a run in ./runs. Raises UsageError, JournalError."""
        self.path = parts.root(named.one(os.fspath(run)))
        self._parts = lake_rows.read_parts(self.path, running=True)
        self.header: dict[str, Any] = self._parts[0].header

    def __repr__(self) -> str:
        drive = self.header["drive"]
        return f"Run({str(self.path)!r}, {drive.get('model')} {drive.get('serial')})"

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """Plan, drive, host and outcome: the columns of `run` in schemas/lake.toml."""
        return lake_rows.of_run(self.path, self._parts, self._figures_of_run)

    @property
    def notes(self) -> list[str]:
        """Missing or doubtful data of the run, with reasons."""
        return list(self._table.data.notes)

    @functools.cached_property
    def figures(self) -> Columns:
        """One row for each window of each step, with its figures and their errors (`KEY_error`): the report's."""
        return _of_rows(_types("figure"), self._figures_of_run.figures)

    @functools.cached_property
    def rows(self) -> Columns:
        """One row for each step that was executed: path, round, swept point, state and why, begin (t_ns, t_utc),
        t0_s and t1_s since the start of the run in drive time, notes."""
        by_number = {part.number: part for part in self._parts}
        made: list[lake_rows.Row] = []
        for row in self._table.rows:
            part = by_number.get(row.part or self._parts[0].number, self._parts[0])
            when = part.at(row.t0_ns) if row.t0_ns is not None else {"part": part.number}
            what = {"step": row.act.path, "do": row.act.do, "round": lake_rows.number_of(row.round)}
            how = {"point": lake_rows.text_of(dict(row.act.point)), "state": row.state, "why": row.why}
            made.append({**what, **how, **when, "t0_s": row.t0_s, "t1_s": row.t1_s, "notes": row.notes})
        return _of_rows(STEP_TYPES, made)

    @functools.cached_property
    def seconds(self) -> Columns:
        """One row for each second of each step, in host time: I/O by direction, and power, energy and clock error."""
        types, rows = _types("second"), []
        for part in self._parts:
            steps = lake_seconds.steps(part.folder, part.events)
            powers = lake_seconds.powers_of(part.folder, steps, sampling.heads_of(part))
            rows += [_second(types, step, lake_seconds.columns(step, powers, part.utc), part.number) for step in steps]
        return _joined(types, rows)

    @functools.cached_property
    def samples(self) -> dict[str, Columns]:
        """All samples of each rail by its name, {} without a rig: t_ns, the time that each represents (dt_ns), V, I,
        and of the gap right before it lost, gap_ns and the energy filled in, gap_J, 0 without a gap. Nothing here
        is unknown, no array masked. About 60 bytes a sample. Raises RigError where rig.bin cannot be read to
        its end."""
        types, columns = _types("sample"), {}
        types = {name: of for name, of in types.items() if name != "rail"}
        for part in self._parts:
            heads = sampling.heads_of(part)
            if heads is None:
                continue
            for rail, name in sampling.rails(heads):
                for piece in sampling.pieces(part.folder, rail, heads):
                    more = {
                        "part": np.full(len(piece["t_ns"]), part.number, np.int32),
                        "t_utc": _utc(part, piece["t_ns"]),
                    }
                    piece["dt_ns"] = piece["dt_ns"].astype(np.int32)
                    columns.setdefault(name, []).append(Columns(types, piece | more, len(piece["t_ns"])))
        return {name: _joined(types, pieces) for name, pieces in columns.items()}

    @functools.cached_property
    def events(self) -> Columns:
        """One row for each event of the journal; `body` is the JSON of its other fields."""
        return _of_rows(_types("event"), (row for part in self._parts for row in lake_rows.events(part)))

    @functools.cached_property
    def smart(self) -> Columns:
        """One row for each SMART poll that was answered; `document` is the JSON of all that the drive reported."""
        return _of_rows(_types("smart"), (row for part in self._parts for row in lake_rows.smart(part)))

    @functools.cached_property
    def cuts(self) -> Columns:
        """One row for each judged session of a power-loss campaign."""
        return _of_rows(_types("cut"), lake_rows.cuts(self._parts))

    @functools.cached_property
    def _table(self) -> "Table":
        return table.load(self.path)

    @functools.cached_property
    def _figures_of_run(self) -> lake_rows.RunFigures:
        return lake_rows.found_in(self._table, self._parts)


def _types(kind: str) -> dict[str, str]:
    return {name: column.type for name, column in schema.kinds()[kind].items() if name not in OF_LAKE}


def _utc(part: lake_rows.Part, t_ns: np.ndarray) -> np.ndarray:
    return (part.utc.at_all(t_ns) // 1000).astype("datetime64[us]")


def _of_rows(types: Mapping[str, str], rows: Iterable[lake_rows.Row]) -> Columns:
    """Rows as columns; what a row does not have is not known."""
    rows = list(rows)
    arrays = {name: _array([schema.writable(row.get(name), of) for row in rows], of) for name, of in types.items()}
    return Columns(types, arrays, len(rows))


def _array(values: list, of: str) -> np.ndarray:
    if of in ("f32", "f64"):
        return np.array([np.nan if value is None else value for value in values], DTYPES[of])
    if of == "utc":
        return np.array([np.datetime64("NaT") if v is None else np.datetime64(v, "us") for v in values], DTYPES[of])
    unknown = np.array([value is None for value in values], bool)
    if of in ("i32", "i64", "bool"):
        return np.ma.MaskedArray(np.array([value or 0 for value in values], DTYPES[of]), unknown)
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _second(types: Mapping[str, str], step: lake_seconds.Step, many: Mapping[str, tuple], part: int) -> Columns:
    """The seconds of one step."""
    n, same, arrays = len(step.edges_ns) - 1, lake_seconds.constants(step) | {"part": part}, {}
    for name, of in types.items():
        if name not in many:
            arrays[name] = _array([same.get(name)] * n, of)
            continue
        values, unknown = many[name]
        if of == "utc":
            arrays[name] = values.astype("datetime64[us]")
        elif of in ("f32", "f64"):
            arrays[name] = np.where(False if unknown is None else unknown, np.nan, values).astype(DTYPES[of])
        else:
            arrays[name] = np.ma.MaskedArray(
                values.astype(DTYPES[of]), np.zeros(n, bool) if unknown is None else unknown
            )
    return Columns(types, arrays, n)


def _joined(types: Mapping[str, str], parts: list[Columns]) -> Columns:
    if not parts:
        return _of_rows(types, ())
    join = lambda arrays: (np.ma if np.ma.isMaskedArray(arrays[0]) else np).concatenate(arrays)
    return Columns(
        types, {name: join([part[name] for part in parts]) for name in types}, sum(part.length for part in parts)
    )
