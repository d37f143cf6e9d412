"""Contenders: who schedules, by what stands behind --policy.

    default, fifo …        policies of Optimus: the real engine decides
    my_policy.py:name      one of your own, in the real engine
    tiresias, native …     peers: what others have published
    peer:fifo              a peer whose name a policy has as well

What knows run times that nobody can know is marked in its name, so that no table shows it beside the others unmarked.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct, structs

from optimus.decide import policies
from optimus.drivers.sim.brain import Brain
from optimus.drivers.sim.clockwork import Scheduler
from optimus.drivers.sim.peers.registry import PEERS
from optimus.drivers.sim.setup import Setup
from optimus.drivers.sim.sweeping.complaints import Complaint, SweepError, misused
from optimus.drivers.sim.sweeping.digests import text_digest
from optimus.engine.engine import Engine
from optimus.engine.policy_loading import PolicyError, check, load
from optimus.model.units import format_duration_ms

PEER = "peer:"
ALIASES = {"native": "native-gang"}
"""What people say, and which of several peers they most likely mean: all pods of a job or none, as gangs are run."""
_TOLD = ("sjf-told", "srtf-told")
"""Peers that look at the run times that jobs tell; every policy of ours may."""


class Contender(Struct, frozen=True, kw_only=True):
    asked: str
    """As it was typed."""
    label: str
    """In tables."""
    reference: str
    """By which it is found again in another process."""
    peer: bool = False
    about: str = ""
    round_ms: int = 0
    """The rhythm it was published with; 0: it acts when something happens."""
    shares: bool = False
    """It shares devices among jobs that did not ask for it."""
    code: str = ""
    """What stands in its file, as a digest; another text is another contender."""

    @property
    def file(self) -> str:
        """Its name; empty where it has none of its own."""
        return Path(self.asked.rpartition(":")[0]).name if self.code else ""


def contenders(names: Sequence[str], sigma: float | None = None) -> tuple[Contender, ...]:
    """One for each name, in order; `sigma` is the error of the run times that jobs tell, None: they tell none."""
    found: list[Contender] = []
    wrong: list[Complaint] = []
    for name in dict.fromkeys(names):
        try:
            found.append(_contender(name, sigma))
        except SweepError as error:
            wrong += error.complaints
    if wrong:
        raise SweepError(wrong)
    return tuple(_apart(found))


def _contender(name: str, sigma: float | None) -> Contender:
    peer = ALIASES.get(name.removeprefix(PEER), name.removeprefix(PEER))
    if name.startswith(PEER) or (peer in PEERS and name not in policies.names()):
        return _peer(name, peer, sigma)
    try:
        policy = load(name)
    except PolicyError as error:
        near = get_close_matches(name, PEERS, n=1)
        hint = "" if ".py" in name else f". Of the peers, {near[0]} is close" if near else ". --list shows the peers"
        raise misused("--policy", f"{error}{hint}") from None
    broken = check(policy)
    if broken:
        raise misused("--policy", f"{name} would fall back to the default in every decision: {broken[0].message}")
    path = Path(name.rpartition(":")[0])
    return Contender(
        asked=name,
        label=_short(policy.name) + _knows(sigma),
        reference=name,
        about=f"{policy.doc or 'A policy that says nothing of itself.'} Decided by the engine of Optimus.",
        code=text_digest(path) if path.suffix == ".py" and path.is_file() else "",
    )


def _short(name: str) -> str:
    """`my_policy.py:name`, wherever the file lies: tables are narrow, and a report travels."""
    path, colon, function = name.rpartition(":")
    return f"{Path(path).name}:{function}" if colon and path.endswith(".py") else name


def _peer(name: str, peer: str, sigma: float | None) -> Contender:
    if peer not in PEERS:
        near = get_close_matches(peer, PEERS, n=1)
        hint = f"did you mean peer:{near[0]}?" if near else f"peers are {', '.join(PEERS)}"
        raise misused("--policy", f"there is no peer {peer}; {hint}")
    entry = PEERS[peer]
    label = entry.make().name
    if entry.oracle and "oracle" not in label and "error" not in label:
        label += " (oracle)"
    if peer in _TOLD:
        label += _knows(sigma)
    rhythm = f" Decides every {format_duration_ms(entry.round_ms)}." if entry.round_ms else ""
    price = " Jobs on one device slow each other down above its full activity." if entry.shares else ""
    return Contender(
        asked=name,
        label=label,
        reference=peer,
        peer=True,
        about=f"{entry.line()}{rhythm}{price}",
        round_ms=entry.round_ms,
        shares=entry.shares,
    )


def _knows(sigma: float | None) -> str:
    if sigma is None:
        return ""
    return f" (told with error {sigma:g})" if sigma else " (oracle)"


def _apart(found: Sequence[Contender]) -> list[Contender]:
    """A policy and a peer may have the same name, and tables need different ones."""
    ours = [one.label for one in found if not one.peer]
    apart = []
    for one in found:
        if one.peer and one.label in ours:
            apart.append(structs.replace(one, label=f"{one.label} (peer)"))
        elif not one.peer and ours.count(one.label) > 1:
            apart.append(structs.replace(one, label=f"{one.label} ({one.asked})"))
        else:
            apart.append(one)
    return apart


def make(contender: Contender, setup: Setup) -> Scheduler:
    """A new one; schedulers remember."""
    if contender.peer:
        build = PEERS[contender.reference].make
        # those that break ties by lot take the seed; the registry does not ask for it
        seeded = "seed" in inspect.signature(build).parameters
        scheduler: Scheduler = build(seed=setup.seed) if seeded else build()  # type: ignore[call-arg]
    else:
        scheduler = Brain(Engine(policy=contender.reference, settings=setup.settings, seed=setup.seed))
    scheduler.name = contender.label
    return scheduler
