"""Faults in choosing the sizes of elastic work together."""

from __future__ import annotations

from tests.mutations.fault import Fault

SIZING = [
    Fault(
        "young-sizes-change",
        "decide/sizing.py",
        "        if world.now_ms - max(started, resized) < least:",
        "        if world.now_ms - max(started, resized) < 0:",
        "a size lasts for a while",
        "sizing/a-young-size-stays.yaml",
    ),
    Fault(
        "restarts-cost-nothing",
        "decide/policies/sizing.py",
        "speed, speed * discount)",
        "speed, speed)",
        "a change of size must be worth its restart",
        "sizing/a-restart-must-be-worth-it.yaml",
    ),
    Fault(
        "attended-work-is-resized",
        "decide/sizing.py",
        "queue < 0 or not world.columns.gives_turns[row]:",
        "queue < 0:",
        "work that may not be stopped is left alone",
        "sizing/what-may-not-be-stopped-is-left-alone.yaml",
    ),
    Fault(
        "newcomers-start-before-room-is-left",
        "decide/sizing.py",
        "        elif not self.taker.is_free_now(row, seating):",
        "        elif member.runs and not self.taker.is_free_now(row, seating):",
        "a start only where room is free",
        "sizing/a-newcomer-gets-room-from-work-of-its-queue.yaml",
    ),
    Fault(
        "one-queue-takes-all-idle-room",
        "decide/sizing.py",
        "            if len({queue for queue, _, _ in here}) == 1:",
        "            if here:",
        "queues divide idle room in turns",
        "sizing/queues-divide-idle-room-in-turns.yaml",
    ),
]
