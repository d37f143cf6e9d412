"""By which policy the controller decides, as far as whoever asks can know it and may use it.

    OPTIMUS_CONTROLLER_POLICY      what the user says: a name, or FILE.py:NAME on his machine
    status.policy of the queues    what the controller has written; used if it is a built-in name

Why: answers by another policy than the controller's would be about another cluster.
Owns: the choice, and the words where it cannot be followed.
Must not: load a file, or a package, because a cluster names it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from optimus.decide.policies import DEFAULT, Policy, get, names
from optimus.drivers.kube.desk.refusing import invalid
from optimus.engine.policy_loading import PolicyError, load

VARIABLE = "OPTIMUS_CONTROLLER_POLICY"


class Choice(NamedTuple):
    policy: Policy
    reference: str
    remark: str = ""
    """For people: why it is not the controller's."""


def chosen(statuses: Iterable[Mapping[str, Any]]) -> Choice:
    """`statuses`: of the queues. Raises JobError where what the user says cannot be used."""
    if said := os.environ.get(VARIABLE):
        try:
            return Choice(load(said), said)
        except PolicyError as error:
            raise invalid(f"{VARIABLE}: {error}") from None
    # While a new leader follows an old one, queues may tell both.
    told = Counter(name for status in statuses if isinstance(name := status.get("policy"), str) and name)
    found = min(told, key=lambda name: (-told[name], name), default=DEFAULT.name)
    if found in names():
        return Choice(get(found), found)
    remark = (
        f"the controller decides by {found}, and answers here are by the default policy: name yours with {VARIABLE}"
    )
    return Choice(DEFAULT, DEFAULT.name, remark)
