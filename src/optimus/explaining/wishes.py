"""Another wish: the same gang elsewhere, less protected, or more important."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from optimus.explaining.suggestion import Idea, Suggestion, first_that_works, tried
from optimus.explaining.trying import Change, Trials
from optimus.model.workloads import ANY_POOL, Group, Preemptible, Topology, Workload, WorkloadClass

Alter = Callable[[Workload], Workload]


def resumed(trials: Trials) -> list[Suggestion]:
    """It is suspended; whether it would start at once."""
    changed = tuple(structs.replace(one, suspended=False) for one in trials.workloads())
    return tried(trials, Idea("resume", "resumed", "suspend: false", Change(workloads=changed)))


def elsewhere(trials: Trials) -> list[Suggestion]:
    found: list[Suggestion] = []
    for idea in _places(trials):
        found += tried(trials, idea)
    return found


def _places(trials: Trials) -> Iterator[Idea]:
    one = trials.workloads()[0]
    if one.pools != (ANY_POOL,):
        words = f"any pool instead of {', '.join(one.pools)}"
        yield _idea(trials, "pools", words, "pools: [any]", lambda w: structs.replace(w, pools=(ANY_POOL,)))
    if one.node_selector:
        asked = ", ".join(f"{key}={value}" for key, value in one.node_selector)
        words = f"nodes without {asked}, too"
        yield _idea(trials, "nodeSelector", words, "nodeSelector: {}", lambda w: structs.replace(w, node_selector=()))
    if models := _models(one.gang):
        words = f"any GPU model instead of {', '.join(models)}"
        yield _idea(trials, "models", words, "gpu without models", lambda w: _with_gang(w, _any_model))
    if levels := _levels(one.gang):
        words = f"not necessarily inside one {', '.join(levels)}"
        field = f"topology: {{preferred: {levels[0]}}}"
        yield _idea(trials, "topology", words, field, lambda w: _with_gang(w, _anywhere))


def less_protected(trials: Trials) -> list[Suggestion]:
    one = trials.workloads()[0]
    if one.preemptible is Preemptible.YES or (
        one.preemptible is Preemptible.DEFAULT and one.workload_class is WorkloadClass.UNATTENDED
    ):
        return []
    return tried(
        trials,
        _idea(
            trials,
            "preemptible",
            "preemptible: it may be stopped for others",
            "preemptible: true",
            lambda w: structs.replace(w, preemptible=Preemptible.YES),
        ),
    )


def more_important(trials: Trials) -> list[Suggestion]:
    one = trials.workloads()[0]
    found: list[Suggestion] = []
    if one.workload_class is WorkloadClass.UNATTENDED:
        words = "class interactive instead of unattended"
        found += tried(
            trials,
            _idea(
                trials,
                "class",
                words,
                "class: interactive",
                lambda w: structs.replace(w, workload_class=WorkloadClass.INTERACTIVE, priority=None),
            ),
        )

    def make(priority: int) -> Idea:
        words = f"priority {priority} instead of {one.effective_priority}"
        return _idea(
            trials, "priority", words, f"priority: {priority}", lambda w: structs.replace(w, priority=priority)
        )

    lowest = first_that_works(trials, _priorities(trials, one), make)
    return [*found, *([lowest[1]] if lowest else [])]


def _priorities(trials: Trials, one: Workload) -> list[int]:
    """Just above each that others of its queue have, and that is not below its own."""
    table = trials.engine.state.workloads
    others = {
        spec.effective_priority
        for name, row in table.row_of.items()
        if name not in trials.names and (spec := table.spec(row)).queue == one.queue
    }
    return sorted(other + 1 for other in others if other >= one.effective_priority)


def _idea(trials: Trials, kind: str, words: str, field: str, alter: Alter) -> Idea:
    changed = tuple(alter(one) for one in trials.workloads())
    return Idea(kind, words, field, Change(workloads=changed, anew=True))


def _with_gang(workload: Workload, alter: Callable[[Group], Group]) -> Workload:
    return structs.replace(workload, gang=alter(workload.gang))


def _models(gang: Group) -> list[str]:
    mine = [model.model for role in gang.roles for model in role.request.models]
    return list(dict.fromkeys([*mine, *(model for group in gang.groups for model in _models(group))]))


def _any_model(gang: Group) -> Group:
    roles = tuple(structs.replace(role, request=structs.replace(role.request, models=())) for role in gang.roles)
    return structs.replace(gang, roles=roles, groups=tuple(map(_any_model, gang.groups)))


def _levels(gang: Group) -> list[str]:
    mine = [gang.topology.required, *(role.topology.required for role in gang.roles)]
    below = [level for group in gang.groups for level in _levels(group)]
    return list(dict.fromkeys(level for level in (*mine, *below) if level))


def _anywhere(gang: Group) -> Group:
    roles = tuple(structs.replace(role, topology=_wished(role.topology)) for role in gang.roles)
    groups = tuple(map(_anywhere, gang.groups))
    return structs.replace(gang, topology=_wished(gang.topology), roles=roles, groups=groups)


def _wished(topology: Topology) -> Topology:
    return Topology(preferred=topology.preferred or topology.required)
