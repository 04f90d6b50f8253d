"""The events of a run folder -> polls, marks and log of RunData, in words."""

from ssdrig.base.errors import by_a_person
from ssdrig.meter import trip
from ssdrig.reading import event_words
from ssdrig.reading.event_words import QUIET, REASONS
from ssdrig.reading.rundata import RunData, asked_cut_ns


def load_events(data: RunData) -> None:
    """Polls, marks and log of the axis, in words."""
    started: dict[int, float] = {}
    hellos = 0
    for event in data.events:
        t, kind = float(data.axis_s(event["t_ns"])), event["kind"]
        if kind in QUIET and kind != "smart.start":
            continue
        text = event_words.words(event)
        if kind == "smart.start":
            started[event["n"]] = t
            continue
        if kind == "smart.end":
            reason = event.get("reason") or "poll"
            begin = started.pop(event["n"], t)
            data.polls.append((begin, t, reason))
            text = f"SMART {REASONS.get(reason, reason)}, {1000 * (t - begin) * data.k:.0f} ms" + (
                "" if event["ok"] else f": FAILED, {event.get('why')}"
            )
            if not event["ok"]:
                data.marks.append((t, "SMART poll failed"))
                data.notes.append(f"SMART poll {event['n']} failed: {event.get('why')}")
        elif kind in ("step.start", "step.end"):
            stopped = by_a_person(event.get("why"))
            if kind == "step.end" and not event.get("ok"):
                data.marks.append((t, f"{event['step']} {'cut short' if stopped else 'failed'}"))
        elif kind == "rig.hello":
            hellos += 1
            hello = event["hello"]
            text = f"rig answers (boot {hello.get('boot')}, firmware {hello.get('firmware')})"
            if hello.get("source"):
                text = f"the meter answers: {str(hello.get('board'))[:120]}"
            if hellos > 1:
                data.marks.append((t, "rig was reset"))
        elif kind == "rig.lost":
            text = f"rig lost: {event.get('why')}"
            data.marks.append((t, "rig lost"))
        elif kind == "rig.certificate":
            of_it = f"{event['id']}, {event['age_s'] / 86400:.1f} days old" if event["id"] else f"none: {event['why']}"
            text = f"rig's certificate {of_it}"
        elif kind == "rig.trip":
            text = trip.in_words(event)
            data.marks.append((t, f"rail {event['rail']} opened by the rig"))
        elif kind == "cut.asked":
            text = f"a cut of the power is asked for from the web (uid {event.get('uid')})"
        elif kind == "cut.dropped":
            text = f"the cut that was asked for is not made: {event.get('why')}"
        elif kind == "cut.fired" and event.get("cut") is None:
            t = float(data.axis_s(asked_cut_ns(event)))
            text = "power cut from the web" + (f" ({event['why']})" if event.get("why") else "")
            data.marks.append((t, "power cut from the web"))
        elif kind == "note":
            text = str(event.get("text"))
            data.marks.append((t, text))
        data.log.append((t, text))
    for t, text in data.remarks():
        data.marks.append((t, text))
        data.log.append((t, f"note: {text}"))
    data.log.sort(key=lambda entry: entry[0])
