"""Two boards for Grafana, as data: what is shown, and nothing of how Grafana writes it down.

    queues       for whoever shares a cluster: who has what, who is due what, who waits and why
    scheduler    for whoever runs the scheduler: is it well, is it fast, what does it ask of the server

`make chart` writes them as JSON into the chart; a test finds every metric they name in what a controller tells.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24


class Panel(NamedTuple):
    title: str
    queries: tuple[tuple[str, str], ...]
    """(expression, legend)"""
    about: str = ""
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    stacked: bool = False


class Board(NamedTuple):
    name: str
    title: str
    panels: tuple[Panel, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """(name, metric and label it lists)"""


def one(expression: str, legend: str = "") -> tuple[tuple[str, str], ...]:
    return ((expression, legend),)


_MINE = 'queue=~"$queue"'
_HERE = 'pool=~"$pool"'
_RATE = "[$__rate_interval]"


def quantile(part: float, metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({part}, sum by ({labels}) (rate({metric}_bucket{_RATE})))"


QUEUES = Board(
    "queues",
    "Optimus / Queues",
    (
        Panel("GPUs", one(f"sum(optimus_pool_gpus{{{_HERE}}})"), kind="stat", width=4, height=4),
        Panel("Free", one(f"sum(optimus_pool_gpus_free{{{_HERE}}})"), kind="stat", width=4, height=4),
        Panel(
            "In use",
            one(f"1 - sum(optimus_pool_gpus_free{{{_HERE}}}) / sum(optimus_pool_gpus{{{_HERE}}})"),
            unit="percentunit",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel(
            "Broken up",
            one(f"sum(optimus_pool_gpus_fragmented{{{_HERE}}}) / sum(optimus_pool_gpus_free{{{_HERE}}})"),
            about="Of the free GPUs, those on nodes of which others are in use.",
            unit="percentunit",
            kind="stat",
            width=4,
            height=4,
        ),
        Panel("Running", one(f"sum(optimus_workloads_running{{{_MINE}}})"), kind="stat", width=4, height=4),
        Panel("Waiting", one(f"sum(optimus_workloads_pending{{{_MINE}}})"), kind="stat", width=4, height=4),
        Panel(
            "Who has what",
            one(f"sum by (queue) (optimus_queue_gpus_allocated{{{_MINE}, {_HERE}}})", "{{queue}}"),
            about="GPUs by queue, queues above others included.",
            stacked=False,
        ),
        Panel(
            "Above its guarantee",
            one(f"sum by (queue) (optimus_queue_gpus_borrowed{{{_MINE}, {_HERE}}})", "{{queue}}"),
            about="What is idle elsewhere is lent, and taken back when its owner asks.",
        ),
        Panel(
            "Has, is due, asks for",
            (
                (f"sum by (queue) (optimus_queue_gpus_allocated{{{_MINE}, {_HERE}}})", "{{queue}} has"),
                (f"sum by (queue) (optimus_queue_gpus_share{{{_MINE}, {_HERE}}})", "{{queue}} is due"),
                (f"sum by (queue) (optimus_queue_gpus_demand{{{_MINE}, {_HERE}}})", "{{queue}} asks for"),
            ),
        ),
        Panel(
            "Why work waits",
            one(f"sum by (reason) (optimus_workloads_pending{{{_MINE}}})", "{{reason}}"),
            about="The reasons that `optimus reasons` explains.",
            stacked=True,
        ),
        Panel(
            "Guarantee and limit",
            (
                (f"sum by (queue) (optimus_queue_gpus_guarantee{{{_MINE}, {_HERE}}})", "{{queue}} guarantee"),
                (f"sum by (queue) (optimus_queue_gpus_limit{{{_MINE}, {_HERE}}})", "{{queue}} limit"),
            ),
        ),
        Panel(
            "Waiting for a place, of half and of nearly all pods",
            (
                (quantile(0.5, "optimus_pod_scheduling_duration_seconds", "queue"), "{{queue}} half"),
                (quantile(0.95, "optimus_pod_scheduling_duration_seconds", "queue"), "{{queue}} 95 of 100"),
            ),
            unit="s",
        ),
        Panel(
            "Stopped or made smaller",
            one(
                f"sum by (queue, reason) (increase(optimus_preemptions_total{{{_MINE}}}{_RATE}))",
                "{{queue}} {{reason}}",
            ),
        ),
        Panel(
            "Free GPUs by pool", one(f"sum by (pool, model) (optimus_pool_gpus_free{{{_HERE}}})", "{{pool}} {{model}}")
        ),
        Panel("Nodes", one(f"sum by (pool, state) (optimus_pool_nodes{{{_HERE}}})", "{{pool}} {{state}}")),
        Panel("Troubles of the set-up", one("optimus_conditions", "{{subject}} {{code}}"), kind="table"),
    ),
    (("queue", "label_values(optimus_workloads_running, queue)"), ("pool", "label_values(optimus_pool_nodes, pool)")),
)

SCHEDULER = Board(
    "scheduler",
    "Optimus / Scheduler",
    (
        Panel("Leaders", one("sum(optimus_leader)"), about="1, but for moments.", kind="stat", width=4, height=4),
        Panel("Synced", one("sum(optimus_synced)"), kind="stat", width=4, height=4),
        Panel(
            "Versions", one("count by (version) (optimus_build_info)", "{{version}}"), kind="stat", width=4, height=4
        ),
        Panel(
            "Binds a second",
            one(f'sum(rate(optimus_api_requests_total{{verb="bind"}}{_RATE}))'),
            kind="stat",
            width=4,
            height=4,
        ),
        Panel("Not settled", one("sum(optimus_unsettled_writes)"), kind="stat", width=4, height=4),
        Panel("Failed binds", one("sum(increase(optimus_bind_failures_total[1h]))"), kind="stat", width=4, height=4),
        Panel("Who leads", one("optimus_leader", "{{pod}}")),
        Panel(
            "A decision takes",
            (
                (quantile(0.5, "optimus_decision_duration_seconds"), "half"),
                (quantile(0.99, "optimus_decision_duration_seconds"), "99 of 100"),
            ),
            unit="s",
        ),
        Panel(
            "A bind takes",
            (
                (quantile(0.5, "optimus_bind_duration_seconds"), "half"),
                (quantile(0.99, "optimus_bind_duration_seconds"), "99 of 100"),
            ),
            about="From the decision until the watch shows it.",
            unit="s",
        ),
        Panel(
            "What plans ask for",
            one(f"sum by (action) (rate(optimus_plan_actions_total{_RATE}))", "{{action}}"),
            unit="ops",
        ),
        Panel(
            "Decisions, cut short, facts of no use",
            (
                (f"sum(rate(optimus_decision_duration_seconds_count{_RATE}))", "decisions"),
                (f"sum(rate(optimus_incomplete_plans_total{_RATE}))", "cut short"),
                (f"sum(rate(optimus_unusable_facts_total{_RATE}))", "facts of no use"),
            ),
            unit="ops",
        ),
        Panel(
            "Requests",
            one(f"sum by (verb, code) (rate(optimus_api_requests_total{_RATE}))", "{{verb}} {{code}}"),
            unit="reqps",
        ),
        Panel(
            "An answer takes",
            (
                (quantile(0.5, "optimus_api_request_duration_seconds", "verb"), "{{verb}} half"),
                (quantile(0.99, "optimus_api_request_duration_seconds", "verb"), "{{verb}} 99 of 100"),
            ),
            unit="s",
        ),
        Panel("In flight", one("sum(optimus_api_requests_in_flight)")),
        Panel(
            "Pods that do not leave",
            one("sum by (state) (optimus_evictions_stuck)", "{{state}}"),
            about="Refused: a disruption budget or a policy keeps them. Terminating: a finalizer, or a dead node.",
        ),
        Panel(
            "Put aside, not read yet, begun anew",
            (
                ("max by (kind) (optimus_objects_put_aside)", "{{kind}} put aside"),
                ("min by (kind) (optimus_watch_synced) == 0", "{{kind}} not read"),
                (f"sum by (part) (increase(optimus_parts_restarted_total{_RATE}))", "{{part}} begun anew"),
            ),
        ),
        Panel("Quiet watches", one("max by (kind) (optimus_watch_lag_seconds)", "{{kind}}"), unit="s"),
        Panel(
            "Watches that broke, were read anew, could not be read",
            (
                (f"sum by (kind) (increase(optimus_watch_failures_total{_RATE}))", "{{kind}} broke"),
                (f"sum by (kind) (increase(optimus_watch_relists_total{_RATE}))", "{{kind}} read anew"),
                (f"sum by (kind) (increase(optimus_watch_unreadable_total{_RATE}))", "{{kind}} unreadable"),
            ),
        ),
        Panel(
            "Changes heard", one(f"sum by (kind) (rate(optimus_watch_changes_total{_RATE}))", "{{kind}}"), unit="ops"
        ),
        Panel(
            "Tokens renewed, events dropped",
            (
                (f"sum(increase(optimus_credentials_renewed_total{_RATE}))", "tokens renewed"),
                (f"sum(increase(optimus_events_dropped_total{_RATE}))", "events dropped"),
            ),
        ),
        Panel("Processor", one(f'rate(process_cpu_seconds_total{{job=~".*optimus.*"}}{_RATE})', "{{pod}}"), unit="s"),
        Panel("Memory", one('process_resident_memory_bytes{job=~".*optimus.*"}', "{{pod}}"), unit="bytes"),
    ),
)

BOARDS = (QUEUES, SCHEDULER)


def board_text(board: Board) -> str:
    return json.dumps(_board(board), indent=2, ensure_ascii=False) + "\n"


def _board(board: Board) -> dict[str, Any]:
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": f"optimus-{board.name}",
        "title": board.title,
        "tags": ["optimus"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source, *(_variable(name, query) for name, query in board.variables)]},
        "panels": _placed(board.panels),
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _placed(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """From left to right, row by row."""
    found, x, y = [], 0, 0
    tall = 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > WIDTH:
            x, y, tall = 0, y + tall, 0
        found.append(_panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": panel.height}))
        x, tall = x + panel.width, max(tall, panel.height)
    return found


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    custom = {"custom": {"stacking": {"mode": "normal"}, "fillOpacity": 30}} if panel.stacked else {}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, **custom}, "overrides": []},
        "options": {},
        "targets": [
            {
                "refId": chr(ord("A") + i),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend or "__auto",
                **({"instant": True, "format": "table"} if panel.kind == "table" else {}),
            }
            for i, (expression, legend) in enumerate(panel.queries)
        ],
    }
