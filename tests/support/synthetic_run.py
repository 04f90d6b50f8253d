"""Writes run folders whose figures are known beforehand: the journal's schema, made byte by byte from constants.

Nothing of the measuring side is used to write them except wire.py and the schema's own text, so that a reader's mistake
cannot hide in the writer. Time zero of `iops` and `watts` is the first I/O of the load, in host seconds.
"""

import json
import struct
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import synthetic_fast
import synthetic_fio

from ssdrig import reading
from ssdrig.meter import wire
from ssdrig.plan import grammar, values
from ssdrig.reading import course, row_figures, table, trust
from ssdrig.reading.course import Course

T_RUN_NS = 1_000_000_000_000  # CLOCK_MONOTONIC at the start of the run
UTC_RUN_NS = 1_795_177_507_894_000_000
STARTED = {"t_ns": T_RUN_NS, "utc_ns": UTC_RUN_NS}
CONVERSION_NS = 1_000_000
OSCILLATOR_PPM = 5000.0  # the chip's own clock runs fast: a conversion takes 1/1.005 of its nominal time
CURRENT_LSB_PA = 7_812_500  # 7.8125 uA
VBUS_LSB_NV = 195_312.5
VBUS_RAW = 25_600  # 5.000 V
WATT = 25_600  # raw current per watt at 5 V
ENERGY_LSB_J = 16 * 3.2 * CURRENT_LSB_PA * 1e-12  # 0.4 mJ
TICK0_US = 5_000_000
C0_GUID = bytes.fromhex("C5AF1028EABFF2A49C4F6F7CC914D5AF")
TESTED_BYTES = 3_865_051_136
# what the steps before a load wrote: more than the drive's raw NAND holds
USED_UP = {"written_bytes": 4 << 32, "valid_bytes": TESTED_BYTES, "churned_bytes": 3 << 32}
# 12 s plateau, then from the zoom at 12 s: 1000 and 3000 in turn, two seconds of nothing, one of 500
WINDOW = [1000, 3000] * 8 + [0, 0, 500]
IOPS = [20000] * 12 + WINDOW


def record(kind: int, payload: bytes, t_ns: int) -> bytes:
    head = struct.pack("<4sB3xIQ", b"SJR1", kind, len(payload), t_ns)
    return head + struct.pack("<I", crc32(payload, crc32(head))) + payload


def watts_at(watts, t_s: np.ndarray) -> np.ndarray:
    """Step function: `watts` = [(from_s, W), ...] in rising order; the first value holds before its time too. Or a
    function of the times."""
    if callable(watts):
        return watts(t_s)
    starts = np.array([s for s, _ in watts])
    values = np.array([w for _, w in watts], float)
    return values[np.clip(np.searchsorted(starts, t_s, "right") - 1, 0, None)]


def rail_events(
    number: int, watts, conversion_ns: int, gone, t0_ns: int, first_ns: int, end_ns: int, tick, noise_lsb=(0, 0)
) -> list[tuple]:
    """One rail's samples and energy frames, but for those from `gone` on; a sensor that comes back (gone = (from_s,
    to_s), of the first I/O) has counted on."""
    events = []
    period = conversion_ns / (1 + OSCILLATOR_PPM * 1e-6)
    n = int((end_ns - t0_ns) / period)
    t = t0_ns + period * np.arange(1, n + 1)
    raw = np.rint(watts_at(watts, (t - first_ns) * 1e-9) * WATT).astype("<i4")
    rng = np.random.default_rng(number)
    vbus = (VBUS_RAW + np.rint(rng.normal(0, noise_lsb[0], n))).astype("<i4")
    vbus[raw < 0], raw = 0, np.maximum(raw, 0)  # less than 0 W: the rail has no power
    raw += np.rint(rng.normal(0, noise_lsb[1], n)).astype("<i4")
    us = np.floor(tick(t)).astype(np.int64)
    body = np.zeros((n, 8), np.uint8)
    dt = np.diff(us, prepend=us[0])
    dt[:: wire.MAX_SAMPLES] = 0
    body[:, :2] = dt.astype("<u2").view(np.uint8).reshape(n, 2)
    body[:, 2:5] = vbus.view(np.uint8).reshape(n, 4)[:, :3]
    body[:, 5:8] = raw.view(np.uint8).reshape(n, 4)[:, :3]

    def there(i):
        return gone is None or not gone[0] <= (t[i] - first_ns) * 1e-9 < gone[1]

    for i in range(0, n, wire.MAX_SAMPLES):
        m = min(wire.MAX_SAMPLES, n - i)
        head = struct.pack(wire.SAMPLES_HEAD, number, 1, m, 0, i, int(us[i]))
        if there(i) and there(i + m - 1):
            events.append((int(t[i + m - 1]), "S", wire.SAMPLES, head + body[i : i + m].tobytes()))
    energy = np.cumsum(raw) / WATT * conversion_ns * 1e-9 / ENERGY_LSB_J  # the register counts nominal time
    charge = np.cumsum(raw) * conversion_ns * 1e-9
    per_second = int(1e9 / period)
    for i in [*range(per_second - 1, n, per_second)]:
        if there(i):
            events.append(
                (
                    int(t[i]),
                    "E",
                    wire.ENERGY,
                    struct.pack(
                        wire.ENERGY_BODY,
                        number,
                        1,
                        i + 1,
                        int(us[i]),
                        int(energy[i]).to_bytes(5, "little"),
                        int(charge[i]).to_bytes(5, "little"),
                        3840,
                        0,
                    ),
                )
            )
    return events


def rig_bin(
    t0_ns: int,
    first_ns: int,
    end_ns: int,
    watts,
    drift_ppm: float,
    lose_frames=(),
    boot: int = 77,
    more_rails=(),
    conversion_ns: int = CONVERSION_NS,
    ping_ns: int = 100_000_000,
    noise_lsb=(0, 0),
    fast: dict | None = None,
    read_late_s: float = 0.0,
) -> bytes:
    """Everything a rig sends from t0 to end: hello, samples, one energy frame a second, a pong for each ping, one each
    ping_ns. more_rails: (name, watts, conversion_ns, gone or None) of each rail after the first. read_late_s: how much
    later than it came the host reads what comes; it sends its pings in time."""

    def tick(t_ns):
        return TICK0_US + (np.asarray(t_ns, float) - t0_ns) * (1 + drift_ppm * 1e-6) / 1000

    rails = [("5V", watts, conversion_ns, None), *more_rails]
    hello = {
        "protocol": 1,
        "boot": boot,
        "board": "synthetic",
        "firmware": "0.1.0",
        "simulated": True,
        "fast": synthetic_fast.FAST if fast is not None else None,
        "rails": [
            {
                "rail": k,
                "name": name,
                "chip": "INA228",
                "config": 1,
                "shunt_uOhm": 15000,
                "current_lsb_pA": CURRENT_LSB_PA,
                "vbus_lsb_nV": VBUS_LSB_NV,
                "adc_config": 0xFB68,
                "shunt_cal": 1536,
                "conversion_ns": conversion_ns,
                "shunt_ns": 1_052_000,
            }
            for k, (name, _, conversion_ns, _) in enumerate(rails)
        ],
    }
    events = [(t0_ns, "H", wire.HELLO, json.dumps(hello).encode())]
    if fast is not None:
        events += synthetic_fast.events(lambda t_s: watts_at(watts, t_s) / 5.0, first_ns, t0_ns, end_ns, tick, **fast)
    for k, (_, of_rail, conversion_ns, gone) in enumerate(rails):
        events += rail_events(k, of_rail, conversion_ns, gone, t0_ns, first_ns, end_ns, tick, noise_lsb)
    rng = np.random.default_rng(1)
    sent = {}
    for token, t1 in enumerate(np.arange(t0_ns + 20_000_000, end_ns - 50_000_000, ping_ns)):
        there = int(t1) + 60_000 + int(rng.exponential(40_000))
        sent[there] = int(t1)
        events.append((there, "P", wire.PONG, struct.pack(wire.PONG_BODY, token, int(tick(there)), 0)))
    out, pings, token = [record(4, b'{"port": "synthetic", "state": "open"}', t0_ns)], [], 0
    frames, arrival = [], 0
    for seq, (t_ns, _, kind, payload) in enumerate(sorted(events, key=lambda e: (e[0], e[1]))):
        # a stream keeps its order
        arrival = max(arrival, t_ns + 60_000 + int(rng.exponential(40_000)) + round(read_late_s * 1e9))
        if kind == wire.PONG:
            pings.append((sent[t_ns], struct.pack("<I", struct.unpack("<I", payload[:4])[0])))
        if seq not in lose_frames:
            frames.append((arrival, 1, struct.pack(wire.HEAD, kind, seq) + payload))
    frames += [(t_ns, 2, token) for t_ns, token in pings]
    out += [record(kind, payload, t_ns) for t_ns, kind, payload in sorted(frames)]
    return b"".join(out)


def smart_document(
    n: int, reason: str, t_ns: int, host_bytes: int, nand_bytes: int, temperature_C: int, took_ns: int
) -> dict:
    page02, pageC0 = bytearray(512), bytearray(512)
    struct.pack_into("<BHBBB", page02, 0, 0, temperature_C + 273, 100, 10, 1)
    units = -(-host_bytes // 512_000)
    page02[48:64] = units.to_bytes(16, "little")
    page02[112:128] = (1).to_bytes(16, "little")
    page02[128:144] = (12).to_bytes(16, "little")
    pageC0[0:16] = nand_bytes.to_bytes(16, "little")
    pageC0[494:496] = (3).to_bytes(2, "little")
    pageC0[496:512] = C0_GUID
    health = {
        "critical_warning": 0,
        "temperature": temperature_C,
        "available_spare": 100,
        "available_spare_threshold": 10,
        "percentage_used": 1,
        "data_units_read": 0,
        "data_units_written": units,
        "host_reads": 0,
        "host_writes": 0,
        "power_cycles": 1,
        "power_on_hours": 12,
        "unsafe_shutdowns": 0,
        "media_errors": 0,
    }
    return {
        "n": n,
        "reason": reason,
        "t_start_ns": t_ns,
        "t_end_ns": t_ns + took_ns,
        "simulated": True,
        "smartctl": {
            "json_format_version": [1, 0],
            "smartctl": {"version": [7, 3], "exit_status": 0},
            "device": {"type": "nvme", "protocol": "NVMe"},
            "model_name": "SIMULATED",
            "temperature": {"current": temperature_C},
            "nvme_smart_health_information_log": health,
            "power_on_time": {"hours": 12},
            "power_cycle_count": 1,
        },
        "log_02h": page02.hex(),
        "log_c0h": pageC0.hex(),
        "log_09h": None,
    }


def write(
    runs: Path,
    iops,
    *,
    watts=((-100.0, 4.0), (0.0, 2.5)),
    fill_s: int = 2,
    zoom_s: int = 10,
    dilation: int = 1,
    wa: float = 3.0,
    smart_every_s: int = 5,
    drift_ppm: float = 80.0,
    lat_ns: int = 800_000,
    op_percent=25,
    model: str = "SIMULATED SATA TLC",
    state: str | None = "complete",
    temperature_C: int = 40,
    lose_frames=(),
    name: str = "consistency-sata-tlc-0001",
    power: bool = True,
    more_rails=(),
    edges: bool = True,
    queue_depth: int | None = None,
    idle_s: int = 0,
    logs: bool = True,
    noise_lsb=(0, 0),
    tail=(1.0,),
    fast: dict | None = None,
    read_late_s: float = 0.0,
) -> Path:
    """One consistency run of len(iops) host seconds of load. `state` None: the process died (no run.end).
    Host bytes before the load are the fill's; NAND bytes = wa x host bytes during the load, 1 x during the fill.
    edges: SMART is also polled at the zoom and 0.1 s before the load's end. queue_depth None: no closed loop (rates and
    latencies are chosen freely). noise_lsb: rms of bus voltage and current. tail: see synthetic_fio.step. fast: what
    synthetic_fast.events() takes. read_late_s: see rig_bin(). Returns the run's folder."""
    run = Path(runs) / name
    run.mkdir(parents=True)
    block, iops = 4096, [int(x) for x in iops]
    seconds = len(iops)
    T = T_RUN_NS
    fill0 = T + 1_000_000_000
    fill1 = fill0 + fill_s * 1_000_000_000
    load0 = fill1 + 500_000_000
    first = load0 + 250_000_000  # fio needs a moment before its first I/O
    load1 = first + seconds * 1_000_000_000
    idle0 = load1 + 700_000_000
    end = load1 + 3_000_000_000 + idle_s * 1_000_000_000
    header = {
        "schema": 1,
        "run": name,
        "ssdrig": "0.1.0",
        "simulated": True,
        "started": {"t_ns": T, "utc_ns": UTC_RUN_NS},
        "plan": plan_of(seconds // dilation, zoom_s, op_percent, idle_s, queue_depth),
        "method": {
            "name": "consistency",
            "duration_s": seconds // dilation,
            "zoom_s": zoom_s,
            "op_percent": op_percent,
            "tested_bytes": TESTED_BYTES,
            "block_bytes": block,
            "queue_depth": queue_depth,
            "fill_block_bytes": 131072,
            "smart_interval_s": smart_every_s,
            "seed": 4242,
        },
        "drive": {
            "model": model,
            "serial": "SIM0001",
            "firmware": "1",
            "capacity_bytes": TESTED_BYTES if op_percent is None else 4294967296,
            "raw_nand_bytes": 5153960755,
            "interface": "nbd",
            "preset": "sata-tlc",
            "time_dilation": dilation,
        },
        "rig": {"port": "synthetic", "simulated": True},
        "host": {"python": "3.11.2", "fio": "fio-3.33", "kernel": "6.1", "cpus": 2},
    }
    (run / "run.json").write_text(json.dumps(header))
    (run / "lock").write_text("")
    events = [(T, "run.start", {"pid": 1}), (T, "clock.anchor", {"utc_ns": UTC_RUN_NS})]

    def step(kind, t0, t1, **more):
        events.append((t0, "step.start", {"step": kind, **more}))
        events.append((t1, "step.end", {"step": kind, "ok": True}))

    step("check", T + 1_000_000, T + 100_000_000)
    step("purge", T + 110_000_000, T + 400_000_000)
    step("fill", fill0, fill1)
    step("load", load0, load1 + 50_000_000, laid=USED_UP, left_s=[seconds + 1, seconds + 3 + idle_s])
    step("flush", load1 + 100_000_000, load1 + 600_000_000)
    if idle_s:
        step("idle", idle0, idle0 + idle_s * 1_000_000_000)
    fill_count = TESTED_BYTES // 131072
    synthetic_fio.step(
        run / "fio" / "fill",
        STARTED,
        fill0,
        [fill_count // fill_s] * (fill_s - 1) + [fill_count - fill_count // fill_s * (fill_s - 1)],
        131072,
        1_000_000,
        "fill",
    )
    synthetic_fio.step(run / "fio" / "load", STARTED, first, iops, block, lat_ns, "load", logs, tail)

    done = np.concatenate([[0], np.cumsum(iops)])
    polls = [(fill0 - 400_000_000, "before", 0)] + [(load0 - 300_000_000, "before", 0)]
    under = dict.fromkeys(range(smart_every_s * dilation, seconds, smart_every_s * dilation), "poll")
    if edges:
        under |= {s: "edge" for s in (zoom_s * dilation, seconds - 0.1) if s < seconds}
    polls += [
        (first + round(s * 1e9), reason, int(np.interp(s, np.arange(seconds + 1), done)))
        for s, reason in sorted(under.items())
    ]
    polls += [(idle0 + idle_s * 1_000_000_000, "after", int(done[-1]))]
    (run / "smart").mkdir()
    for n, (t_ns, reason, count) in enumerate(polls):
        host = TESTED_BYTES if n else 0
        host, nand = host + count * block, host + int(count * block * wa)
        doc = smart_document(n, reason, t_ns, host, nand, temperature_C + n % 3, 10_000_000)
        (run / "smart" / f"{n:03d}.json").write_text(json.dumps(doc))
        events.append((t_ns, "smart.start", {"n": n, "reason": reason}))
        events.append((t_ns + 10_000_000, "smart.end", {"n": n, "reason": reason, "ok": True}))
    events.append((end, "clock.anchor", {"utc_ns": UTC_RUN_NS + end - T}))
    if state:
        why = "" if state == "complete" else "synthetic failure"
        events.append(
            (end + 1_000_000, "run.end", {"state": state, "why": why, "exit_code": 0 if state == "complete" else 4})
        )
    (run / "rig.bin").write_bytes(
        rig_bin(
            *(T, first, end, watts, drift_ppm, lose_frames),
            more_rails=more_rails,
            noise_lsb=noise_lsb,
            fast=fast,
            read_late_s=read_late_s,
        )
        if power
        else b""
    )
    seal(run, [{"t_ns": t, "kind": kind, **more} for t, kind, more in sorted(events, key=lambda e: e[0])])
    return run


def plan_of(time_s: int, zoom_s: int, op_percent: float | None, idle_s: int, queue_depth: int | None = None) -> dict:
    """The plan of such a run, as run.json has it; of a load that ended before its window began a longer one."""
    params = {
        "rule": "never",
        "time": f"{max(time_s, zoom_s + 2)} s",
        "steady": f"from {zoom_s} s",
        "idle": f"{idle_s} s",
    }
    params["range"] = "100 %" if op_percent is None else "raw 75 %"  # TESTED_BYTES, whatever is told
    text = grammar.find("consistency")[0]
    load = f"qd = {queue_depth}" if queue_depth else 'qd = 32\nrate = "1000 kIOPS"'
    text = text.replace("qd      = 32", load)
    return {"name": "consistency", "variant": None, "scaled": False, "params": params, "text": text, "acts": []}


def seal(run: Path, events: list[dict]) -> None:
    """Write events.jsonl: numbered lines with their CRC, and the sums of all files before run.end."""
    events = [event for event in events if event["kind"] != "sums"]
    if events[-1]["kind"] == "run.end":
        files = [
            path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in ("lock", "events.jsonl")
        ]
        sums = {
            path.relative_to(run).as_posix(): [
                path.stat().st_size,
                None if path.name == "rig.bin" else f"{crc32(path.read_bytes()):08x}",
            ]
            for path in files
        }
        events = [*events[:-1], {"t_ns": events[-1]["t_ns"], "kind": "sums", "files": sums}, events[-1]]
    out = b""
    for number, event in enumerate(events):
        text = f'{json.dumps(event)[:-1]}, "line": {number}'.encode()
        out += text + b', "crc": "%08x"}\n' % crc32(text)
    (run / "events.jsonl").write_bytes(out)


def journal_of(run: Path) -> tuple[dict, list[dict]]:
    """run.json and the events of a run, as put() takes them."""
    lines = (run / "events.jsonl").read_text().splitlines()
    events = [{key: value for key, value in json.loads(line).items() if key not in ("line", "crc")} for line in lines]
    return json.loads((run / "run.json").read_text()), events


def put(run: Path, header: dict, events: list[dict]) -> None:
    """Write a run's journal anew."""
    (run / "run.json").write_text(json.dumps(header))
    seal(run, events)


def run_of(folder: Path, iops=IOPS, zoom_s=12, **more) -> tuple[reading.RunData, dict]:
    """Such a run, read back, and its figures."""
    data, figures, _ = table.in_full(write(folder, iops, zoom_s=zoom_s, **more))
    return data, figures


def changed(made: Course, more=(), tested_bytes: int | None = None, drive=None, **load) -> dict:
    """The figures of a run whose load, drive or tested range had been another; `more`: windows."""
    (row,) = [row_ for row_ in made.table.rows if row_.act.path == "load"]
    spans = {name: values.Span(from_s=float(t0_s), to_s=float(t1_s), exact=True) for name, t0_s, t1_s in more}
    act = replace(row.act, keys={**row.act.keys, "windows": {**row.act.keys["windows"], **spans}})
    act = replace(act, range_bytes=tested_bytes or act.range_bytes)
    data = replace(row.data, **load)
    new = replace(row, act=act, data=data, windows={"all": row.windows["all"]}, notes=[])
    row_figures._windows(new, data)
    table._rests_on(new, data, trust.of_run(data))
    header = {**made.table.data.header, "drive": made.table.data.header["drive"] | (drive or {})}
    rows = [new if row_ is row else row_ for row_ in made.table.rows]
    of = replace(made.table, rows=rows, data=replace(made.table.data, header=header))
    return course.figures_of(of, new, data)


def shown(folders, more=()) -> list[dict]:
    """The figures of such runs as their page shows them; `more`: windows."""
    return [json.loads(json.dumps(table.in_full(folder, more=more).figures)) for folder in folders]


def whole(figures: dict) -> dict:
    """The figures with those of the window `all` in the flat keys."""
    return {**figures, **figures["windows"]["all"]}


def other_notes(figures: dict) -> list[str]:
    """All notes but those that a short run always has: too few values for percentiles, no histogram of lat, no
    cliff."""
    always = ("are too few", "no histogram of lat", "no cliff", "no fast current channel")
    return [n for n in figures["notes"] if not any(words in n for words in always)]
