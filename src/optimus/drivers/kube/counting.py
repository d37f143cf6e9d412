"""Who counts for whom: every selector that is in use has a counter, and everybody who matches takes one of it.

Why: the brain keeps rules about neighbours as arithmetic on counters (`optimus.model.rules`, ADR 19) and knows no
labels.
Owns: the names of counters, given to a selector when the first pod needs it and taken back when the last one has gone;
for each pod that is seen, what it takes and which rules bind it.
Must not: know nodes, or who is ours. Which of it the brain counts by itself is the body's business
(`nodes.taken_beside`).

A counter is taken by
    those who match all terms of somebody's affinity     near them is where one of these is
    those who match a term of somebody's anti-affinity   apart from them is where none is
    those who *have* a term of anti-affinity             whoever matches it keeps apart from them, too
    those who match a selector of somebody's spreading
    those who use a volume that only one pod may use

Pods come and go in any order. Whoever is told what a pod takes may keep that in books for as long as the pod is there;
so a number is not used again before all who were told to take it have gone.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from optimus.drivers.kube.selectors import Selector, Whom
from optimus.model.reasons import Code, Reason, reason
from optimus.model.rules import EVERYWHERE, NEAR, Bond, NeighbourRule

MOST_TERMS, MOST_LEVELS = 64, 8
"""Of one pod: terms of affinity, anti-affinity and spreading together; levels that are told apart beyond that."""
MOST_SUBJECTS, MOST_OF_ONE = 2048, 512
"""In all, and of those that pods of one namespace were the first to need: each may be a column of the brain's tables.
With 2,000 of them and 1,000 nodes, the first decision takes about a second."""
MANY_KINDS = 1024
"""Answers are kept for so many kinds of pods beside two for each pod that is there."""


class Term(Struct, frozen=True):
    """Of affinity or anti-affinity."""

    whom: Whom
    level: str


class Spreading(Struct, frozen=True):
    whom: Whom
    level: str
    max_skew: int = 1
    min_domains: int = 1
    counts_tainted: bool = True
    counts_all: bool = False


class Social(Struct, frozen=True, kw_only=True):
    """What about a pod matters to its neighbours, and they to it."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    leaving: bool = False
    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    spread: tuple[Spreading, ...] = ()
    sole_claims: tuple[str, ...] = ()
    """Volume claims of its namespace that only one pod may use."""


class _Matching(Struct, frozen=True):
    """Those who match all of these."""

    whoms: tuple[Whom, ...]


class _Having(Struct, frozen=True):
    """Those who have this term of anti-affinity."""

    term: Term

    @property
    def whoms(self) -> tuple[Whom, ...]:
        """Those who keep apart from them."""
        return (self.term.whom,)


class _Using(Struct, frozen=True):
    """Those who use this volume claim."""

    namespace: str
    claim: str


_Subject = _Matching | _Having | _Using
_Kind = tuple[str, tuple[tuple[str, str], ...], bool]
"""Namespace, labels that anybody asks for, whether it is leaving: pods alike in this match the same selectors."""


class Counting:
    def __init__(self) -> None:
        self.version = 0
        """Changes when what other pods take, or which rules bind them, may have changed."""
        self._namespaces: dict[str, dict[str, str]] = {}
        self._pods: dict[str, Social] = {}
        self._subjects_of: dict[str, tuple[_Subject, ...]] = {}
        """By pod: what it needs a counter for."""
        self._users: dict[_Subject, int] = {}
        self._numbers: dict[_Subject, int] = {}
        self._takers: dict[int, set[str]] = {}
        """By number: pods that were told to take it and are still there."""
        self._told: dict[str, set[int]] = {}
        self._retired: set[int] = set()
        """Numbers that mean nothing any more, but are still in somebody's books."""
        self._free: list[int] = []
        self._next = 0
        self._keys: Counter[str] = Counter()
        """Labels that selectors ask for, and how many do."""
        self._first: dict[_Subject, str] = {}
        """The namespace that was the first to need it; empty where it is in the place of too many."""
        self._spent: Counter[str] = Counter()
        """By namespace: of how many it was the first."""
        self._beyond: dict[str, tuple[Social, bool]] = {}
        """Pods for whose rules there are too many already, as they were seen."""
        self._freed = False
        self._meant: dict[_Kind, list[_Matching | _Having]] = {}
        """By kind of pod: the selectors it matches."""

    # -- seeing -------------------------------------------------------------------------------------------------------

    def see_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Its labels; None when it has gone."""
        before = self._namespaces.get(name)
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = dict(labels)
        if before != labels:
            self._meant.clear()
            self.version += 1

    def namespaces_with(self, selector: Selector) -> list[str]:
        return [name for name, labels in self._namespaces.items() if selector.accepts(labels)]

    def see(self, pod: str, social: Social, *, to_place: bool = True) -> None:
        """A pod that takes room, or wants to. `to_place`: it may have to be placed, so that its own rules matter; of
        others only what they take, and whom they keep apart from."""
        needed = tuple(dict.fromkeys(_subjects(social) if to_place else _imposed(social)))
        self._beyond.pop(pod, None)
        if self._is_full(social.namespace, sum(1 for subject in needed if subject not in self._numbers)):
            self._beyond[pod] = (social, to_place)
            social = coarse(social)
            needed = tuple(_imposed(social))
        self._pods[pod] = social
        before = self._subjects_of.get(pod, ())
        self._subjects_of[pod] = needed
        for subject in needed:
            self._use(subject, social.namespace if pod not in self._beyond else "")
        for subject in before:
            self._release(subject)

    def admit(self) -> None:
        """Those that were too many, the first ones first, since others have gone."""
        full: set[str] = set()
        for pod, (social, to_place) in list(self._beyond.items()) if self._freed else ():
            if social.namespace not in full:
                self.see(pod, social, to_place=to_place)
                full |= {social.namespace} if pod in self._beyond else set()
        self._freed = False

    def full(self, pod: str) -> Reason | None:
        """Why it cannot be placed, if its rules are too many for those that there are."""
        if pod not in self._beyond:
            return None
        namespace = self._beyond[pod][0].namespace
        own = f"pods of namespace {namespace} have {self._spent[namespace]} of at most {MOST_OF_ONE}"
        told = f"its rules about other pods are not counted: {own}, all have {len(self._numbers)} of {MOST_SUBJECTS}"
        return reason(Code.NOT_READY, missing=f"{told}; write fewer or the same as others, or wait until others end")

    def _is_full(self, namespace: str, more: int) -> bool:
        return more > 0 and (self._spent[namespace] + more > MOST_OF_ONE or len(self._numbers) + more > MOST_SUBJECTS)

    def forget(self, pod: str) -> None:
        if self._pods.pop(pod, None) is None:
            return
        self._beyond.pop(pod, None)
        for subject in self._subjects_of.pop(pod):
            self._release(subject)
        for number in self._told.pop(pod, ()):
            self._takers[number].discard(pod)
            self._reuse_if_over(number)

    # -- answers ------------------------------------------------------------------------------------------------------

    def takes(self, pod: str) -> tuple[str, ...]:
        """The counters of which it takes one each, sorted."""
        if not self._numbers:
            return ()
        social = self._pods[pod]
        subjects: list[_Subject] = [*self._matching(social), *map(_Having, social.apart)]
        subjects += [_Using(social.namespace, claim) for claim in social.sole_claims]
        numbers = {self._numbers[subject] for subject in subjects if subject in self._numbers}
        told = self._told.setdefault(pod, set())
        for number in numbers - told:
            self._takers[number].add(pod)
        told |= numbers
        return tuple(sorted(map(_name, numbers)))

    def rules(self, pod: str) -> tuple[NeighbourRule, ...]:
        """All that bind it: its own, and those of others who keep apart from it. It must have been seen as one to
        place; of one that is beyond all counting (`full`) there are none."""
        if pod in self._beyond:
            return ()
        social = self._pods[pod]
        found = [*self._near(social), *self._apart(social), *self._spread(social)]
        found += [
            NeighbourRule(
                bond=Bond.APART,
                counter=self._counter(having),
                level=having.term.level,
                told=f"those who keep apart from {having.term.whom.told()}",
            )
            for having in self._warning(social)
        ]
        for claim in social.sole_claims:
            counter = self._counter(_Using(social.namespace, claim))
            told = f"others that use volume claim {claim}, which only one pod may"
            found.append(NeighbourRule(bond=Bond.APART, counter=counter, level=EVERYWHERE, told=told))
        return tuple(dict.fromkeys(found))

    def _near(self, social: Social) -> list[NeighbourRule]:
        if not social.near:
            return []
        all_terms = _all_of(social.near)
        counter, is_one = self._counter(all_terms), all_terms in self._matching(social)
        return [
            NeighbourRule(
                bond=Bond.NEAR, counter=counter, level=term.level, alone_is_fine=is_one, told=term.whom.told()
            )
            for term in social.near
        ]

    def _apart(self, social: Social) -> list[NeighbourRule]:
        return [
            NeighbourRule(
                bond=Bond.APART, counter=self._counter(_Matching((t.whom,))), level=t.level, told=t.whom.told()
            )
            for t in social.apart
        ]

    def _spread(self, social: Social) -> list[NeighbourRule]:
        return [
            NeighbourRule(
                bond=Bond.SPREAD,
                counter=self._counter(_Matching((one.whom,))),
                level=one.level,
                max_skew=one.max_skew,
                min_domains=one.min_domains,
                counts_tainted=one.counts_tainted,
                counts_all=one.counts_all,
                told=one.whom.told(),
            )
            for one in social.spread
        ]

    # -- who matches --------------------------------------------------------------------------------------------------

    def _matching(self, social: Social) -> list[_Matching]:
        return [one for one in self._meaning(social) if isinstance(one, _Matching)]

    def _warning(self, social: Social) -> list[_Having]:
        """Terms of others that keep apart from such a pod."""
        return [one for one in self._meaning(social) if isinstance(one, _Having)]

    def _meaning(self, social: Social) -> list[_Matching | _Having]:
        labels = tuple([label for label in social.labels if label[0] in self._keys])
        kind = social.namespace, labels, social.leaving
        if kind not in self._meant:
            if len(self._meant) > MANY_KINDS + 2 * len(self._pods):
                self._meant.clear()  # most are about pods that have gone
            known = [one for one in self._numbers if not isinstance(one, _Using)]
            self._meant[kind] = [one for one in known if self._is_meant(kind, one.whoms)]
        return self._meant[kind]

    def _is_meant(self, kind: _Kind, whoms: Iterable[Whom]) -> bool:
        namespace, pairs, leaving = kind
        around, labels = self._namespaces.get(namespace, {}), dict(pairs)
        return all(whom.includes(namespace, around, labels, leaving=leaving) for whom in whoms)

    # -- numbers ------------------------------------------------------------------------------------------------------

    def _counter(self, subject: _Subject) -> str:
        return _name(self._numbers[subject])

    def _use(self, subject: _Subject, namespace: str) -> None:
        self._users[subject] = self._users.get(subject, 0) + 1
        if subject in self._numbers:
            return
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number, self._next = self._next, self._next + 1
        self._numbers[subject] = number
        self._first[subject] = namespace
        self._spent[namespace] += 1
        self._takers[number] = set()
        self.version += 1
        if not isinstance(subject, _Using):
            self._ask_for(_label_keys(subject.whoms))
            for kind, meant in self._meant.items():
                if self._is_meant(kind, subject.whoms):
                    meant.append(subject)

    def _ask_for(self, keys: set[str]) -> None:
        if not keys <= self._keys.keys():
            self._meant.clear()  # pods that were alike may differ in this
        self._keys.update(keys)

    def _release(self, subject: _Subject) -> None:
        self._users[subject] -= 1
        if self._users[subject]:
            return
        del self._users[subject]
        self._freed = True
        payer = self._first.pop(subject)
        _less(self._spent, payer)
        number = self._numbers.pop(subject)
        self._retired.add(number)
        self._reuse_if_over(number)
        self.version += 1
        if not isinstance(subject, _Using):
            for meant in self._meant.values():
                if subject in meant:
                    meant.remove(subject)
            for key in _label_keys(subject.whoms):
                _less(self._keys, key)

    def _reuse_if_over(self, number: int) -> None:
        if number in self._retired and not self._takers[number]:
            self._retired.discard(number)
            heapq.heappush(self._free, number)


def coarse(social: Social) -> Social:
    """For one that says more than is counted: it is not placed by rules, and where it is, it keeps apart from everybody
    whom it may mean. Too much is kept away, never too little."""
    meant = [term for term in social.apart if term.whom.selector is not None]
    at_home = all(one.whom.among is None and one.whom.namespaces == (social.namespace,) for one in meant)
    whom = Whom(Selector(), (social.namespace,)) if at_home else Whom(Selector(), (), Selector())
    levels = sorted({term.level for term in meant})
    levels = [EVERYWHERE] if len(levels) > MOST_LEVELS else levels
    return structs.replace(social, near=(), spread=(), apart=tuple(Term(whom, level) for level in levels))


def _label_keys(whoms: Iterable[Whom]) -> set[str]:
    return {key for whom in whoms for key in whom.label_keys()}


def _less(counted: Counter[str], name: str) -> None:
    counted[name] -= 1
    if not counted[name]:
        del counted[name]


def _subjects(social: Social) -> list[_Subject]:
    found: list[_Subject] = [_all_of(social.near)] if social.near else []
    found += [_Matching((term.whom,)) for term in social.apart]
    found += [_Matching((one.whom,)) for one in social.spread]
    found += [_Using(social.namespace, claim) for claim in social.sole_claims]
    return found + _imposed(social)


def _imposed(social: Social) -> list[_Subject]:
    return [_Having(term) for term in social.apart]


def _all_of(terms: Iterable[Term]) -> _Matching:
    return _Matching(tuple(dict.fromkeys(term.whom for term in terms)))


def _name(number: int) -> str:
    return f"{NEAR}{number}"
