"""The life of a slot: the one answer to "who holds what".

A slot is (workload, role, ordinal). `wanted` is a slot without a place and has no row in the table.

              hold                  bind                 confirm
    wanted ─────────► held ──────────────────► binding ──────────► running
      ▲ ▲              │ │                        │ │                │ │
      │ │    forget    │ │         forget         │ │                │ │
      │ └──────────────┘ │   (bind failed, or     │ │                │ │
      │ ◄────────────────┼────── it vanished) ────┘ │                │ │
      │                  │ stop                     │ stop           │ │ stop
      │                  ▼                          ▼                ▼ │
      │                 (wanted at once:         releasing ◄───────────┤
      │                  nothing runs yet)          │                  │
      └──────────────────── gone ◄──────────────────┘      gone (lost) ┘

One that was told to stop and could not be (`stay`: somebody refused it) goes back from releasing to running.

A held slot may be *promised*: its room is still being left by others. It counts against the room that
is coming, not against the room that is free; `keep` turns it into an ordinary held slot.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Phase(IntEnum):
    WANTED = 0
    HELD = 1
    BINDING = 2
    RUNNING = 3
    RELEASING = 4


class Event(StrEnum):
    HOLD = "hold"
    BIND = "bind"
    CONFIRM = "confirm"
    FORGET = "forget"
    STOP = "stop"
    GONE = "gone"
    STAY = "stay"


TRANSITIONS: dict[tuple[Phase, Event], Phase] = {
    (Phase.WANTED, Event.HOLD): Phase.HELD,
    (Phase.HELD, Event.BIND): Phase.BINDING,
    (Phase.HELD, Event.CONFIRM): Phase.RUNNING,  # a body that binds and starts in one step
    (Phase.HELD, Event.FORGET): Phase.WANTED,
    (Phase.HELD, Event.STOP): Phase.WANTED,
    (Phase.HELD, Event.GONE): Phase.WANTED,
    (Phase.BINDING, Event.CONFIRM): Phase.RUNNING,
    (Phase.BINDING, Event.FORGET): Phase.WANTED,
    (Phase.BINDING, Event.STOP): Phase.RELEASING,
    (Phase.BINDING, Event.GONE): Phase.WANTED,
    (Phase.RUNNING, Event.STOP): Phase.RELEASING,
    (Phase.RUNNING, Event.GONE): Phase.WANTED,
    (Phase.RELEASING, Event.GONE): Phase.WANTED,
    (Phase.RELEASING, Event.STAY): Phase.RUNNING,
    (Phase.RELEASING, Event.STOP): Phase.RELEASING,
    (Phase.RELEASING, Event.CONFIRM): Phase.RELEASING,  # a late confirmation of a slot already told to stop
}


def after(phase: Phase, event: Event) -> Phase | None:
    """The next phase, or None where the event makes no sense and is to be ignored."""
    return TRANSITIONS.get((phase, event))
