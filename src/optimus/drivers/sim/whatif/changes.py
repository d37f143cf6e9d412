"""Changes: what somebody wants to try, from words to a world.

    --add-nodes 2, 4x8, 4x8:a100            like the usual node of the cluster, or of that size and model
    --remove-node gpu-07, --remove-node 'gpu-0*'
    --queue vision.guarantee=16, --queue vision.limit@a100=none
    --policy shortest-first

Why: the same words change a recorded cluster and a present one.
Owns: reading them against the world there is, and the changed world.
Must not: play. Everything wrong is told at once, with what there is instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from msgspec import Struct, structs

from optimus.drivers.sim.present import Present
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.standing import read_state, setup_of, standings
from optimus.drivers.sim.whatif.adding import added_nodes
from optimus.drivers.sim.whatif.quotas import QuotaWish, changed_queues, read_quota
from optimus.drivers.sim.whatif.wrong import ChangeError, Wrong
from optimus.engine.engine import Engine
from optimus.model import observations as seen
from optimus.model.nodes import Node
from optimus.model.observations import Observation
from optimus.model.queues import Queue

__all__ = ["ChangeError", "Changes", "changed_present", "changed_setup", "read_changes"]
_GROUP = re.compile(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,2}))?(?::([A-Za-z0-9][A-Za-z0-9_.-]*))?", re.ASCII)


class Changes(Struct, frozen=True, kw_only=True):
    added: tuple[Node, ...] = ()
    removed: tuple[str, ...] = ()
    queues: tuple[Queue, ...] = ()
    """As they are afterwards; only those that change."""
    policy: str = ""
    """Empty: as it is."""
    words: tuple[str, ...] = ()
    """One sentence for each."""


def read_changes(
    setup: Setup,
    *,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    quotas: Sequence[str] = (),
    policy: str = "",
) -> Changes:
    """Against the world there is. ChangeError with everything that is wrong."""
    wrong: list[Wrong] = []
    added: list[Node] = []
    words: list[str] = []
    for text in add:
        match = _GROUP.fullmatch(text)
        if match is None:
            wrong.append(Wrong("--add-nodes", f"{text}: write how many, or nodes x GPUs: 2, 4x8 or 4x8:a100"))
            continue
        if not setup.nodes:
            wrong.append(
                Wrong("--add-nodes", f"{text}: there is no node that new ones could be like; add one to the world")
            )
            continue
        more, said = added_nodes((*setup.nodes, *added), int(match[1]), int(match[2] or 0), match[3] or "")
        added += more
        words.append(said)
    removed = _removed(setup.nodes, remove, wrong)
    if removed:
        words.append(f"without {'node' if len(removed) == 1 else 'nodes'} {', '.join(removed)}")
    if len(removed) == len(setup.nodes) and not added:
        wrong.append(Wrong("--remove-node", "no node would be left; leave one, or add some with --add-nodes"))
    wishes: list[QuotaWish] = []
    for text in quotas:
        wish = read_quota(text, setup)
        if isinstance(wish, Wrong):
            wrong.append(wish)
        else:
            wishes.append(wish)
    queues = changed_queues(setup.queues, wishes, wrong)
    words += [wish.words for wish in wishes]
    if policy:
        words.append(f"policy {policy}")
    if wrong:
        raise ChangeError(wrong)
    return Changes(added=tuple(added), removed=removed, queues=queues, policy=policy, words=tuple(words))


def _removed(nodes: Iterable[Node], patterns: Sequence[str], wrong: list[Wrong]) -> tuple[str, ...]:
    names = [node.name for node in nodes]
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            near = get_close_matches(pattern, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names[:5])}{' …' * (len(names) > 5)}"
            wrong.append(Wrong("--remove-node", f"there is no node {pattern}; {hint}"))
        found |= dict.fromkeys(matching)
    return tuple(found)


def changed_setup(setup: Setup, changes: Changes) -> Setup:
    """For jobs that are played from the beginning."""
    gone = set(changes.removed)
    new = {queue.name: queue for queue in changes.queues}
    return structs.replace(
        setup,
        nodes=(*(node for node in setup.nodes if node.name not in gone), *changes.added),
        queues=tuple(new.get(queue.name, queue) for queue in setup.queues),
        outages=tuple(outage for outage in setup.outages if outage.node not in gone),
    )


def setup_now(present: Present) -> Setup:
    """The cluster and the queues of a present."""
    return setup_of(read_state(present.state), tick_ms=0)


def changed_present(present: Present, changes: Changes) -> Present:
    """For the future from now on: the nodes are there, or gone, at once. What ran on one that is gone waits again."""
    engine = Engine()
    engine.restore(present.state)
    gone = set(changes.removed)
    facts: list[Observation] = []
    for standing in standings(read_state(present.state)):
        if any(place.node in gone for place in standing.places):
            name = standing.workload.id
            facts += [seen.SlotGone(name, place.role, place.ordinal) for place in standing.places]
    facts += [seen.NodeGone(name) for name in changes.removed]
    facts += [seen.NodeSeen(node) for node in changes.added]
    facts += [seen.QueueSeen(queue) for queue in changes.queues]
    engine.observe(facts, present.now_ms)
    if engine.problems:
        raise ChangeError([Wrong("", str(problem)) for problem in engine.problems])
    return structs.replace(present, state=engine.dump(), policy=changes.policy or present.policy)
