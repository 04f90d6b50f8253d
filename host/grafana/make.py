"""Writes dashboards/*.json from queries.toml: `python host/grafana/make.py`. tests/project/test_grafana.py fails when a
committed file differs."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATASOURCE = {"type": "influxdb", "uid": "${ds}"}  # a variable: it works with any name that the datasource has
SIZES = {"stat": (6, 4), "timeseries": (12, 8), "table": (24, 8), "bargauge": (12, 8)}  # columns of 24, rows
COLUMNS = 24


def read() -> dict[str, Any]:
    """queries.toml, the conditions of [where] put in."""
    document = tomllib.loads((HERE / "queries.toml").read_text(encoding="utf-8"))
    where = document.pop("where")

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: whole(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [whole(inner) for inner in value]
        return re.sub(r"(?<!\$)\{(\w+)\}", lambda match: where[match[1]], value) if isinstance(value, str) else value

    return whole(document)


def queries(dashboard: dict) -> list[str]:
    """Of panels, annotations and variables."""
    marks = [dashboard["marks"]] if "marks" in dashboard else []
    return [*dashboard["variables"].values(), *marks, *(panel["query"] for panel in dashboard["panels"])]


def alias(query: str) -> str:
    """The name of a line: its tags, and which of several values it is. A tag that is not in GROUP BY would be shown as
    it is written."""
    groups = query.rpartition(" GROUP BY ")[2] if " GROUP BY " in query else ""
    words = [f"$tag_{name}" for name in re.findall(r'"(\w+)"', groups)]
    several = len(re.findall(r' AS "', query.partition(" FROM ")[0])) > 1
    return " ".join([*words, *(["$col"] if several or not words else [])])


def panel(number: int, layout: dict, x: int, y: int) -> dict:
    kind, unit = layout.get("kind", "timeseries"), layout.get("unit")
    width, height = SIZES[kind]
    table = kind == "table"
    target = {"refId": "A", "datasource": DATASOURCE, "rawQuery": True, "query": layout["query"]}
    target |= {"resultFormat": "table"} if table else {"resultFormat": "time_series", "alias": alias(layout["query"])}
    lines = {"spanNulls": False, "lineWidth": 1, "fillOpacity": 0, "showPoints": "auto"}
    custom = lines if kind == "timeseries" else {}
    custom |= {"axisLabel": layout["axis"]} if "axis" in layout else {}
    defaults = ({"unit": unit} if unit else {}) | ({"custom": custom} if custom else {})
    options: dict[str, Any] = {}
    if kind in ("stat", "bargauge"):
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": layout.get("field", ""), "values": False}}
    elif kind == "timeseries":
        options = {"tooltip": {"mode": "multi"}, "legend": {"displayMode": "list", "placement": "bottom"}}
    return {
        "id": number,
        "type": kind,
        "title": layout["title"],
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "targets": [target],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
    }


def panels(layouts: list[dict]) -> list[dict]:
    """Row by row from the left, as they come."""
    out, x, y, high = [], 0, 0, 0
    for number, one in enumerate(layouts, 1):
        width, height = SIZES[one.get("kind", "timeseries")]
        if x + width > COLUMNS:
            x, y, high = 0, y + high, 0
        out.append(panel(number, one, x, y))
        x, high = x + width, max(high, height)
    return out


def variable(name: str, query: str) -> dict:
    all_of_them = name in ("host", "model")
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": query,
        "refresh": 2,  # when the time range changes
        "sort": 2 if name == "run" else 1,  # the latest run first
        "multi": not all_of_them and name == "run",
        "includeAll": all_of_them,
        "allValue": ".*" if all_of_them else None,
        "current": {"text": "All", "value": "$__all"} if all_of_them else {},
    }


def dashboard(name: str, layout: dict) -> dict:
    ds = {"name": "ds", "label": "database", "type": "datasource", "query": "influxdb", "current": {}, "refresh": 1}
    marks = {
        "name": "events",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "blue",
        "target": {"refId": "Anno", "query": layout.get("marks"), "rawQuery": True, "textEditor": True},
        "query": layout.get("marks"),
        "textColumn": "text",
        "tagsColumn": "kind",
    }
    return {
        "uid": f"ssdrig-{name}",
        "title": layout["title"],
        "tags": ["ssdrig"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "time": {"from": layout["from"], "to": "now"},
        "refresh": layout["refresh"],
        "templating": {"list": [ds, *(variable(*one) for one in layout["variables"].items())]},
        "annotations": {"list": [marks] if "marks" in layout else []},
        "links": [{"type": "dashboards", "title": "ssdrig", "tags": ["ssdrig"], "asDropdown": False}],
        "panels": panels(layout["panels"]),
    }


def files() -> dict[Path, str]:
    """Path -> text of every dashboard."""
    made = {name: dashboard(name, layout) for name, layout in read().items()}
    return {
        HERE / "dashboards" / f"ssdrig-{name}.json": json.dumps(one, indent=1, ensure_ascii=False) + "\n"
        for name, one in made.items()
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.name)
