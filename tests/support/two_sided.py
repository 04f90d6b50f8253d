"""What fio leaves of a load without its logs, reads and writes each with latencies of their own."""

import json
from pathlib import Path


def left_by_fio(
    folder: Path, first_ns: int, lasts_s: float, sides: dict[str, dict[int, int]], block: int = 4096
) -> None:
    """`sides`: {"read" or "write": {latency in ns: I/Os}} of a load that began then, in a document each second."""
    folder.mkdir(parents=True)
    (folder / "start.json").write_text(json.dumps({"t_ns": first_ns, "utc_ns": first_ns}))
    whole_ms, lines = max(1, round(1000 * lasts_s)), []
    for ms in [*range(1000, whole_ms, 1000), whole_ms]:
        job: dict = {"jobname": "x", "error": 0, "job_runtime": ms}
        for side, held in sides.items():
            part = {ns: n * ms // whole_ms for ns, n in held.items()}
            if n := sum(part.values()):
                mean = sum(ns * count for ns, count in part.items()) / n
                lat = {"N": n, "mean": mean} | (
                    {"bins": {str(ns): c for ns, c in part.items()}} if ms == whole_ms else {}
                )
                job[side] = {"io_bytes": n * block, "total_ios": n, "runtime": ms, "clat_ns": {"N": n}, "lat_ns": lat}
        at_ns = first_ns + ms * 1_000_000
        lines.append(json.dumps({"t_ns": at_ns, "timestamp_ms": at_ns // 1_000_000, "jobs": [job]}))
    (folder / "out.json").write_text("\n".join(lines) + "\n")
