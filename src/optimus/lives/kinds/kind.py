"""What a type of jobs has to say: a handful of facts, and one pure function.

    job, replica, peers ──► dress ──► additions to its container

Why: a new type is one file that fills this in, and one line in the list beside it.
Owns: the shape of it.
Must not: know any type.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from optimus.model.jobs import Job

Slot = tuple[str, int]
"""Role and ordinal."""
HERE = "127.0.0.1"


class Rescale(StrEnum):
    """What becomes of those that run when a job gets another size."""

    IN_PLACE = "in place"  # others come or go beside them
    RESTART = "restart"  # all save, leave, and start again together


class Peers(Struct, frozen=True, kw_only=True):
    """Who else is there, as a replica may know it when it starts."""

    namespace: str
    service: str
    """Through which names are found: `<pod>.<service>`; empty for one that is alone."""
    replicas: dict[str, tuple[str, ...]]
    """By role: the names of its pods, by ordinal."""
    job: str = ""
    """Its name, with which those of its pods begin."""
    attempt: int = 1

    def address(self, role: str, ordinal: int) -> str:
        """Where one of them is found, whether or not it is there yet; on one machine all are here."""
        return f"{self.job}-{role}-{ordinal}.{self.service}" if self.service else HERE


class Additions(Struct, frozen=True, kw_only=True):
    """To the main container of one replica. What its template says by the same name stays."""

    env: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] = ()
    """Instead of the template's; empty: that one."""
    pod: dict[str, Any] = {}
    """Fields of the pod's spec that the template does not have."""


def nothing_more(job: Job, slot: Slot, peers: Peers) -> Additions:  # noqa: ARG001 - the shape of `dress`
    return Additions()


def nowhere(job: str, namespace: str, template: dict[str, Any]) -> str:  # noqa: ARG001 - the shape of `url`
    return ""


class Kind(Struct, frozen=True, kw_only=True):
    beside: tuple[tuple[str, int], ...] = ()
    """Other roles than `worker` and how many of each; they are there whenever a worker is wanted."""
    rescale: Rescale = Rescale.IN_PLACE
    survives: bool = False
    """Whether those that stay go on when one is lost; else all start again."""
    anchor: Slot | None = None
    """The one without which the others cannot go on; None: each can be missed."""
    ends_with: str = ""
    """The role whose end is that of the job; empty: all have to end."""
    named: bool = False
    """Whether it has a Service although it is alone."""
    dress: Callable[[Job, Slot, Peers], Additions] = nothing_more
    url: Callable[[str, str, dict[str, Any]], str] = nowhere
    """Name, namespace, pod template -> where people reach it; empty: nowhere."""
