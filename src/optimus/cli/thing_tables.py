"""One queue, one pool, one node: what it is, and who is in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text

from optimus.cli import job_tables
from optimus.cli.job_tables import gpus
from optimus.cli.showing import Printer
from optimus.client.targets import View
from optimus.model.reasons import counted

NONE = "–"


def below(name: str, queues: list[View]) -> set[str]:
    """All queues of the tree under this one."""
    found: set[str] = set()
    while more := {row["name"] for row in queues if row["parent"] in {name, *found}} - found:
        found |= more
    return found


def in_pool(name: str, pools: list[View], nodes: list[View]) -> list[View]:
    """As the scheduler does it: the first pool, by name, whose selector matches; the rest is in `default`."""
    ordered = sorted(pools, key=lambda pool: str(pool["name"]))

    def pool_of(node: View) -> str:
        matching = (p["name"] for p in ordered if p["selector"] and p["selector"].items() <= node["labels"].items())
        return str(next(matching, "default"))

    return [node for node in nodes if pool_of(node) == name]


def queue(printer: Printer, told: dict[str, Any]) -> None:
    view = told["queue"]
    printer.line(view["name"], "bold")
    children = ", ".join(row["name"] for row in told["queues"] if row["parent"] == view["name"])
    facts = [("state", view["state"]), ("parent", view["parent"] or NONE), ("children", children or NONE)]
    facts += [("jobs", f"{view['running']} running, {view['waiting']} waiting, of its own")]
    _facts(printer, facts)
    if view["gpu"]:
        printer.line()
        header = ["pool", "guarantee", "limit", "weight", "share now", "in use", "of it held", "asked for"]
        rows = [
            [
                share["pool"],
                gpus(share["guaranteeMilli"]),
                NONE if share["limitMilli"] is None else gpus(share["limitMilli"]),
                str(share["weight"]),
                gpus(share["shareMilli"]),
                gpus(share["allocatedMilli"]),
                gpus(share.get("heldMilli") or 0),
                gpus(share["demandMilli"]),
            ]
            for share in view["gpu"]
        ]
        printer.columns(rows, header=header, indent=2, right=range(1, 8))
    _jobs(printer, told["jobs"])


def node(printer: Printer, told: dict[str, Any]) -> None:
    view = told["node"]
    printer.line(view["name"], "bold")
    facts = [
        ("state", job_tables.node_state(view)),
        ("has", f"{job_tables.capacity(view)}, {counted(job_tables.devices(view), 'GPU')}"),
        ("labels", ", ".join(f"{key}={value}" for key, value in sorted(view["labels"].items())) or NONE),
        *([("virtual", job_tables.VIRTUAL.format(machine=view["machine"]))] if view.get("virtual") else []),
        ("limits", view["limits"]),
        *[("held" if one.startswith("[") else "reserved", one) for one in job_tables.kept_for(view)],
    ]
    _facts(printer, facts)
    if view["models"]:
        printer.line()
        rows = [
            [str(index), model or NONE, f"{gpus(used)} in use", ", ".join(map(_short, who)) or _unused(view, index)]
            for index, (model, used, who) in enumerate(
                zip(view["models"], view["usedMilli"], view["jobs"], strict=True)
            )
        ]
        printer.columns(rows, header=["GPU", "model", "", "who"], indent=2)
    _jobs(printer, told["jobs"])


def pool(printer: Printer, told: dict[str, Any]) -> None:
    view = told["pool"]
    printer.line(view["name"], "bold")
    selector = ", ".join(f"{key}={value}" for key, value in sorted(view["selector"].items()))
    facts = [
        ("nodes with", selector or "what no other pool takes"),
        ("topology", " > ".join(view["levels"]) or NONE),
        ("strategy", ", ".join(f"{name} {how}" for name, how in view["strategy"].items()) or "pack"),
    ]
    _facts(printer, facts)
    printer.line()
    if told["nodes"]:
        job_tables.nodes(printer, told["nodes"], wide=False)
    else:
        printer.line("No node is in it.", "yellow")
    shares = [{**row, "gpu": [s for s in row["gpu"] if s["pool"] == view["name"]]} for row in told["queues"]]
    if shares:
        printer.line()
        job_tables.queues(printer, shares, wide=False)


DESCRIBED: dict[str, Callable[[Printer, dict[str, Any]], None]] = {"queues": queue, "nodes": node, "pools": pool}


def _facts(printer: Printer, facts: list[tuple[str, str]]) -> None:
    printer.columns([(Text(key, style="dim"), value) for key, value in facts], indent=2)


def _jobs(printer: Printer, jobs: list[View]) -> None:
    printer.line()
    if jobs:
        job_tables.jobs(printer, jobs, wide=False)
    else:
        printer.line("No job is in it.", "dim")


def _unused(node: View, device: int) -> str:
    if device in job_tables.gone(node):
        return "gone"
    kept = job_tables.held_devices(node).get(device)
    return f"held for {_short(kept)}" if kept else "free"


def _short(workload: str) -> str:
    return workload.removeprefix("default/")
