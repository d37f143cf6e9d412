"""Jobs, queues, pools and nodes as tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from optimus.cli.showing import Printer
from optimus.client.progress import Progress, progress_of
from optimus.model.reasons import counted
from optimus.model.units import format_duration_ms, format_moment_ms

STYLES = {
    "Running": "green",
    "Succeeded": "dim",
    "Failed": "red",
    "Cancelled": "dim",
    "Pending": "yellow",
    "Preempted": "yellow",
    "Suspended": "magenta",
    "Checkpointing": "cyan",
    "Rescaling": "cyan",
    "Starting": "cyan",
    "Admitted": "cyan",
}
Table = Callable[..., None]
VIRTUAL = "their cores and memory are counted and not there; this machine has {machine}"
HELD = "○"
"""A GPU that nobody uses because it is held for somebody."""
WATCHED = (20, 8, 13, 8, 4, 4, 4)
"""Least widths where lines are added one by one."""


def jobs(
    printer: Printer,
    rows: list[dict[str, Any]],
    *,
    wide: bool,
    least: tuple[int, ...] = (),
    header: bool = True,
) -> None:
    if not rows:
        printer.line("No jobs. Submit one:  optimus run --gpus 1 -- python -c 'print(1)'", "dim")
        return
    now_ms = time.time_ns() // 1_000_000
    names = ["job", "queue", "phase", "replicas", "GPUs", "age", "ran"]
    names += ["class", "attempt", "done", "ends", "where"] if wide else []
    table = []
    for row in rows:
        cells: list[Text | str] = [
            name(row),
            row["queue"],
            Text(row["phase"], style=STYLES.get(row["phase"], "")),
            replicas(row),
            held(row),
            rough(now_ms - row["submittedMs"]),
            rough(_ran_ms(row, now_ms)) if row["startedMs"] else "–",
        ]
        if wide:
            told = progress_of(row, now_ms)
            cells += [row["jobClass"], str(row["attempt"]), done(told) or "–", ends(told) or "–", _where(row)]
        table.append([*cells, (row["reason"] or {}).get("text", "")])
    printer.columns(table, header=[*names, "why"] if header else (), least=least, right=(4, 5, 6))


def queues(printer: Printer, rows: list[dict[str, Any]], *, wide: bool) -> None:
    table = []
    for row in rows:
        for number, share in enumerate(row["gpu"] or [None]):
            there = share.get("running") if share else None
            running = there if there is not None else "" if number else row["running"]
            limit = "–" if share is None or share["limitMilli"] is None else gpus(share["limitMilli"])
            numbers = [
                gpus(share["guaranteeMilli"]) if share else "–",
                limit,
                gpus(share["shareMilli"]) if share else "–",
                gpus(share["allocatedMilli"]) if share else "–",
                _borrowed(share) if share else "–",
            ]
            table.append(
                [
                    row["name"],
                    share["pool"] if share else "–",
                    *numbers,
                    str(running),
                    "" if number else str(row["waiting"]),  # for any of its pools
                    row["state"] if wide else "",
                ]
            )
    header = ["queue", "pool", "guarantee", "limit", "share", "in use", "borrowed", "running", "waiting", ""]
    printer.columns(table, header=header, right=(2, 3, 4, 5, 6, 7, 8))


def nodes(printer: Printer, rows: list[dict[str, Any]], *, wide: bool) -> None:
    table = []
    for row in rows:
        used = sum(row["usedMilli"])
        lost, kept = gone(row), held_devices(row)
        grid = Text("".join(_cell(used, n in lost, n in kept) for n, used in enumerate(row["usedMilli"])))
        models = ", ".join(sorted(set(row["models"]))) or "–"
        cells: list[Text | str] = [row["name"], node_state(row), grid]
        cells += [f"{gpus(used)} of {devices(row)}", models]
        cells += [capacity(row), row["limits"]] if wide else []
        table.append([*cells, "; ".join(why_idle(row))])
    header = ["node", "state", "GPUs", "in use", "model", *(["", "limits"] if wide else []), "why idle"]
    some = any(row[-1] for row in table)
    printer.columns(table if some else [row[:-1] for row in table], header=header if some else header[:-1])
    machines = {row["machine"] for row in rows if row.get("machine")} if wide else set()
    for machine in sorted(machines):
        printer.line()
        printer.paragraph(f"virtual nodes: {VIRTUAL.format(machine=machine)}", "dim")


def gone(node: Mapping[str, Any]) -> list[int]:
    """Its devices that are no longer part of the cluster; a scheduler of before does not say."""
    found: list[int] = node.get("gone") or []
    return found


def capacity(node: Mapping[str, Any]) -> str:
    """A cluster file need not name CPU and memory: then there is none to be asked for."""
    cores, memory = node["cpuMilli"] / 1000, node["memoryMib"] / 1024
    return ", ".join(
        (
            counted(f"{cores:g}", "core") if cores else "no CPU named",
            f"{memory:.4g} GiB" if memory else "no memory named",
        )
    )


def held_devices(node: Mapping[str, Any]) -> dict[int, str]:
    """Its devices that are held for somebody, and for whom; a scheduler of before does not say."""
    return {device: one["job"] for one in node.get("held") or () for device in one["devices"]}


def why_idle(node: Mapping[str, Any]) -> list[str]:
    """Each reason once, with the devices it is about: `[2,3] held for …`. Nothing where no GPU is idle."""
    if all(milli >= 1000 for milli in node["usedMilli"]):
        return []
    return kept_for(node)


def kept_for(node: Mapping[str, Any]) -> list[str]:
    """Also of what is still in use."""
    devices_of: dict[str, list[int]] = {}
    for one in node.get("held") or ():
        devices_of.setdefault(one["reason"]["text"], []).extend(one["devices"])
    return [
        f"[{','.join(map(str, sorted(set(found))))}] {text}" if found else text for text, found in devices_of.items()
    ]


def devices(node: Mapping[str, Any]) -> int:
    return len(node["usedMilli"]) - len(gone(node))


def node_state(node: Mapping[str, Any]) -> str:
    if node["ready"]:
        return "ready, virtual" if node.get("virtual") else "ready"
    return "gone, not empty" if len(gone(node)) == len(node["usedMilli"]) else "not ready"


def pools(printer: Printer, rows: list[dict[str, Any]], *, wide: bool) -> None:  # noqa: ARG001 - one form for all tables
    if not rows:
        printer.line("No pools of its own: every node is in the pool default.", "dim")
        return
    printer.columns(
        [[row["name"], ", ".join(f"{k}={v}" for k, v in row["selector"].items()) or "–"] for row in rows],
        header=["pool", "selector"],
    )


def described(printer: Printer, view: dict[str, Any], events: list[dict[str, Any]]) -> None:
    now_ms = time.time_ns() // 1_000_000
    printer.line(f"{view['namespace']}/{view['name']}", "bold")
    reason = view["reason"]
    facts: list[tuple[str, Text | str]] = [
        ("phase", Text(view["phase"], style=STYLES.get(view["phase"], ""))),
        *([("why", f"{reason['code']}: {reason['text']}")] if reason else []),
        ("queue", f"{view['queue']}, {view['jobClass']}, priority {view['priority']}"),
        ("replicas", replicas(view) + ("" if view["final"] else f", {counted(gpus(view['gpuMilli']), 'GPU')}")),
        *([("parts", parts(view))] if view["counts"] else []),
        *[("held", text) for text in _held_where(view)],
        ("command", " ".join(view["command"])),
        ("submitted", format_moment_ms(view["submittedMs"], now_ms)),
        *([("started", format_moment_ms(view["startedMs"], now_ms))] if view["startedMs"] else []),
        *([("ended", format_moment_ms(view["endedMs"], now_ms))] if view["endedMs"] else []),
        *([("ran", format_duration_ms(_ran_ms(view, now_ms) // 1000 * 1000))] if view["startedMs"] else []),
        ("attempt", f"{view['attempt']} ({view['failures']} failures, {view['preemptions']} preemptions)"),
    ]
    how_far = progress_of(view, now_ms)
    if how_far.fraction is not None:
        steps = f" ({how_far.step:,} of {how_far.total:,})" if how_far.step is not None and how_far.total else ""
        facts.append(("done", done(how_far) + steps))
    if how_far.left_ms is not None:
        facts.append(("ends", f"{ends(how_far)}, about {_minute(now_ms + how_far.left_ms, now_ms)}"))
    elif how_far.quiet_ms:
        facts.append(("ends", f"not known: {ends(how_far)}"))
    if view["progress"] and (told := _progress(view["progress"], now_ms)):
        facts.append(("progress", told))
    printer.columns([(Text(key, style="dim"), value) for key, value in facts], indent=2)
    if view["replicas"]:
        printer.line()
        rows = [
            [_replica(one), one["state"], one["node"], ",".join(map(str, one["devices"])) or "–"]
            for one in view["replicas"]
        ]
        printer.columns(rows, header=["replica", "state", "node", "GPUs"], indent=2)
    if events:
        printer.line()
        told_rows = [[format_moment_ms(e["atMs"], now_ms), e["code"], e["text"]] for e in events]
        printer.columns(told_rows, header=["when", "what", ""], indent=2)


TABLES: dict[str, Table] = {"jobs": jobs, "queues": queues, "nodes": nodes, "pools": pools}


def done(told: Progress) -> str:
    """`45%`; 100 only when it is."""
    return "" if told.fraction is None else f"{int(told.fraction * 100)}%"


def ends(told: Progress) -> str:
    """`in 12m`; nothing if it is not known."""
    if told.quiet_ms:
        return f"quiet for {rough(told.quiet_ms)}"
    if told.left_ms is None:
        return ""
    return f"in {rough(told.left_ms)}" if told.left_ms else "any moment"


def name(row: dict[str, Any]) -> str:
    return row["name"] if row["namespace"] == "default" else f"{row['namespace']}/{row['name']}"


def replicas(row: dict[str, Any]) -> str:
    if row["counts"]:
        done = row["counts"].get("Succeeded", 0)
        return f"{done} of {sum(row['counts'].values())} parts"
    least, most = row["minReplicas"], row["maxReplicas"]
    wanted = str(most) if least == most else f"{least}–{most}"
    return wanted if row["final"] else f"{row['runningReplicas']} of {wanted}"


def parts(row: Mapping[str, Any]) -> str:
    """`27 Succeeded, 2 Running, 1 Failed (12)`: the most first, and which have failed, as far as that is told."""
    failed = sorted((one["part"] for one in row["parts"] if one["phase"] == "Failed"), key=int)
    told = []
    for phase, count in sorted(row["counts"].items(), key=lambda pair: (-pair[1], pair[0])):
        which = f" ({', '.join(failed)}{', …' * (count > len(failed))})" if phase == "Failed" and failed else ""
        told.append(f"{count:,} {phase}{which}")
    return ", ".join(told)


def held(row: Mapping[str, Any]) -> str:
    """GPUs that it has, or asks for while it has none; what is over has none and asks for none."""
    return "–" if row["final"] else gpus(row["gpuMilli"])


def gpus(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli / 1000:g}"


def rough(ms: int) -> str:
    """Rough: 3m, 2h."""
    seconds = max(ms, 0) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _held_where(view: Mapping[str, Any]) -> list[str]:
    """`on a-1 [0,1] until 14:20`: of a gang, a line for each node."""
    by_node: dict[str, list[dict[str, Any]]] = {}
    for one in view.get("held") or ():
        by_node.setdefault(one["node"], []).append(one)
    return [f"on {node} {text}" for node, held in by_node.items() for text in kept_for({"held": held})]


def _minute(at_ms: int, now_ms: int) -> str:
    """More would pretend to know it better."""
    return format_moment_ms(at_ms // 60_000 * 60_000, now_ms)


def _ran_ms(row: dict[str, Any], now_ms: int) -> int:
    if row["counts"]:  # of an array, from the first start to the last end
        return int((row["endedMs"] or now_ms) - row["startedMs"])
    running = now_ms - row["sinceMs"] if row["sinceMs"] is not None else 0
    return int(row["ranMs"]) + max(running, 0)


def _progress(told: dict[str, Any], now_ms: int) -> str:
    """What a job says of itself, beyond how far it is: all that people ask about; the rest is in -o json."""
    total, saved = told.get("total"), told.get("last_checkpoint_ms")
    parts = [
        f"step {told['step']}" if told.get("step") is not None and not total else "",
        f"{told['steps_per_second']:.3g} steps/s" if isinstance(told.get("steps_per_second"), int | float) else "",
        f"saved {rough(now_ms - saved)} ago" if isinstance(saved, int) else "",
        f"problem: {told['problem']}" if told.get("problem") else "",
    ]
    return ", ".join(filter(None, parts))


def _where(row: dict[str, Any]) -> str:
    nodes_used = sorted({one["node"] for one in row["replicas"] if one["node"]})
    return ", ".join(nodes_used[:3]) + (f" and {len(nodes_used) - 3} more" if len(nodes_used) > 3 else "") or "–"


def _borrowed(share: dict[str, Any]) -> str:
    return gpus(max(share["allocatedMilli"] - max(share["guaranteeMilli"], 0), 0))


def _cell(milli: int, is_gone: bool, is_held: bool) -> str:
    if not milli and (is_gone or is_held):
        return "×" if is_gone else HELD
    return "·" if not milli else "█" if milli >= 1000 else "▄"


def _replica(one: dict[str, Any]) -> str:
    part = f"{one['part']}-" if one["part"] else ""
    return f"{part}{one['role']}-{one['ordinal']}"
