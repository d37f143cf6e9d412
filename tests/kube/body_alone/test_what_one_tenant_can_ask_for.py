"""One pod, or one namespace, that asks for very much: it waits and is told why, and all others go on as before.

Work is counted here (columns of the brain, questions to an evaluator), never time.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from optimus.drivers.kube import selecting
from optimus.drivers.kube.columns import MOST_NAMES_OF_ONE, MOST_PORTS
from optimus.drivers.kube.counting import MOST_OF_ONE, MOST_TERMS
from optimus.drivers.kube.devices import MOST_OF_ONE as MOST_EXPRESSIONS_OF_ONE
from optimus.drivers.kube.objects import Pod
from optimus.drivers.kube.spare import Spare
from optimus.model.plans import Plan
from tests.kube.body_alone.cluster import Alone, pod
from tests.kube.body_alone.test_devices_that_are_late import DRIVER, using
from tests.pods.claiming import asking, claim, device, device_class, slices

HOST = "kubernetes.io/hostname"


def written(
    name: str, *, namespace: str = "team", labels: dict[str, str] | None = None, on: str = ""
) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(pod(name, on=on))
    made["metadata"] |= {"namespace": namespace, "labels": labels or {}, "uid": f"uid-{namespace}-{name}"}
    return made


def read(made: dict[str, Any]) -> Pod:
    return msgspec.convert(made, Pod)


def apart(made: dict[str, Any], *values: str, level: str = HOST, **more: Any) -> dict[str, Any]:
    """Keeps apart from pods with the label x of these values."""
    terms = [{"labelSelector": {"matchLabels": {"x": one}}, "topologyKey": level, **more} for one in values]
    made["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return made


def on_ports(made: dict[str, Any], *ports: int) -> dict[str, Any]:
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 1, "hostPort": one} for one in ports]
    return made


def foreign(made: dict[str, Any]) -> Pod:
    made["spec"]["schedulerName"] = "another"
    made["spec"]["containers"][0].get("resources", {}).get("requests", {}).pop("nvidia.com/gpu", None)
    return read(made)


def columns(alone: Alone) -> int:
    return alone.engine.state.resources.count


def why(plan: Plan) -> dict[str, str]:
    """By the last part of a name."""
    return {one.workload.rpartition("/")[2]: f"{one.reason.code}: {one.reason.text()}" for one in plan.waiting}


# -- one pod ----------------------------------------------------------------------------------------------------------


async def test_a_pod_with_thousands_of_terms_waits_and_costs_nothing() -> None:
    alone = Alone(nodes=3)
    await alone.turn()
    before = columns(alone)
    alone.mirror.pod(read(apart(written("wild"), *(f"v{i}" for i in range(5000)))))
    alone.mirror.pod(pod("honest"))
    plan = await alone.turn()
    assert columns(alone) < before + 10
    assert [name for name, _ in alone.writer.binds] == ["honest"]
    (told,) = why(plan).values()
    assert told.startswith("Malformed") and "5000 required terms" in told and f"at most {MOST_TERMS} are read" in told


async def test_a_pod_with_as_many_terms_as_are_read_is_placed() -> None:
    alone = Alone()
    alone.mirror.pod(read(apart(written("large"), *(f"v{i}" for i in range(MOST_TERMS)))))
    await alone.turn()
    assert alone.writer.binds == [("large", "n0")]


async def test_a_pod_with_thousands_of_host_ports_waits_and_costs_nothing() -> None:
    alone = Alone(nodes=3)
    await alone.turn()
    before = columns(alone)
    alone.mirror.pod(read(on_ports(written("wild"), *range(1, 12_001))))
    alone.mirror.pod(read(on_ports(written("large"), *range(1, MOST_PORTS + 1))))
    plan = await alone.turn()
    assert columns(alone) < before + MOST_PORTS + 10
    assert [name for name, _ in alone.writer.binds] == ["large"]
    (told,) = why(plan).values()
    assert told.startswith("Malformed") and "12000 host ports" in told and f"at most {MOST_PORTS}" in told


async def test_so_many_ports_of_a_pod_that_somebody_put_on_a_node_are_taken_there() -> None:
    alone = Alone(nodes=2)
    alone.mirror.pod(read(on_ports(written("wild", on="n0"), *range(1, 12_001))))
    alone.mirror.pod(read(on_ports(written("honest"), 80)))
    await alone.turn()
    assert columns(alone) < 20
    assert alone.writer.binds == [("honest", "n1")]


# -- pods of others ---------------------------------------------------------------------------------------------------


async def test_ports_of_others_matter_as_soon_as_somebody_asks_for_them() -> None:
    alone = Alone(nodes=2)
    await alone.turn()
    before = columns(alone)
    alone.mirror.pod(foreign(on_ports(written("theirs", on="n0"), *range(1, 3001))))
    await alone.turn()
    assert columns(alone) == before, "nobody asks for any of them"
    alone.mirror.pod(read(on_ports(written("ours"), 80)))
    await alone.turn()
    assert alone.writer.binds == [("ours", "n1")]
    assert columns(alone) == before + 1
    alone.mirror.pod(read(on_ports(written("late"), 80)))
    plan = await alone.turn()
    assert [name for name, _ in alone.writer.binds] == ["ours"], why(plan)


async def test_terms_of_others_that_mean_nobody_of_ours_cost_nothing() -> None:
    alone = Alone(nodes=2)
    await alone.turn()
    before = columns(alone)
    for number in range(10):
        values = (f"{number}-{i}" for i in range(20))
        alone.mirror.pod(foreign(apart(written(f"theirs-{number}", on="n0"), *values)))
    await alone.turn()
    assert columns(alone) == before
    alone.mirror.pod(read(written("meant", labels={"x": "3-7"})))
    await alone.turn()
    assert alone.writer.binds == [("meant", "n1")]


@pytest.mark.parametrize("pods", [1, 30])
async def test_who_keeps_apart_from_too_many_keeps_apart_from_all_it_may_mean(pods: int) -> None:
    """Too much is kept away, never too little: one pod with very many terms, and many that have many."""
    alone = Alone(nodes=2)
    await alone.turn()
    each = 1000 // pods + 1
    for number in range(pods):
        values = (f"{number}-{i}" for i in range(each))
        alone.mirror.pod(foreign(apart(written(f"theirs-{number}", on="n0"), *values)))
    for number in range(4):
        alone.mirror.pod(read(written(f"meant-{number}", labels={"x": f"{pods - 1}-{each - 1}"})))
        alone.mirror.pod(read(written(f"elsewhere-{number}", namespace="others")))
    await alone.turn()
    assert columns(alone) < 30
    assert {on for name, on in alone.writer.binds if name.startswith("meant")} == {"n1"}
    assert sum(1 for name, _ in alone.writer.binds if name.startswith("elsewhere")) == 4
    assert "n0" in {on for name, on in alone.writer.binds if name.startswith("elsewhere")}


# -- one namespace ----------------------------------------------------------------------------------------------------


async def test_a_namespace_with_too_many_rules_waits_and_others_do_not() -> None:
    alone = Alone(nodes=4)
    each, pods = MOST_TERMS // 2, 20
    for number in range(pods):
        alone.mirror.pod(read(apart(written(f"p{number:02}"), *(f"{number}-{i}" for i in range(each)))))
    alone.mirror.pod(read(apart(written("honest", namespace="others", labels={"x": "y"}), "y")))
    plan = await alone.turn()
    fitting = MOST_OF_ONE // (2 * each)
    started = {name for name, _ in alone.writer.binds}
    assert started == {"honest", *(f"p{number:02}" for number in range(fitting))}
    assert columns(alone) < MOST_OF_ONE + 20
    told = why(plan)["p19"]
    assert told.startswith("NotReady") and f"of at most {MOST_OF_ONE}" in told and "wait until others end" in told
    alone.mirror.pod_gone("uid-team-p00")
    await alone.turn()
    await alone.turn()
    assert {name for name, _ in alone.writer.binds} - started == {f"p{fitting:02}"}, "as soon as there is room"


async def test_a_namespace_with_too_many_ports_waits_and_others_do_not() -> None:
    alone = Alone(nodes=4)
    each = 64
    for number in range(8):
        alone.mirror.pod(read(on_ports(written(f"p{number}"), *range(number * each + 1, (number + 1) * each + 1))))
    alone.mirror.pod(read(on_ports(written("honest", namespace="others"), 9999)))
    plan = await alone.turn()
    fitting = MOST_NAMES_OF_ONE // each
    started = {name for name, _ in alone.writer.binds}
    assert started == {"honest", *(f"p{number}" for number in range(fitting))}
    told = why(plan)["p7"]
    assert told.startswith("NotReady") and f"team has {fitting * each} of at most {MOST_NAMES_OF_ONE}" in told
    alone.mirror.pod_gone("uid-team-p0")
    await alone.turn()
    await alone.turn()
    assert {name for name, _ in alone.writer.binds} - started == {f"p{fitting}"}


# -- devices ----------------------------------------------------------------------------------------------------------


class Asked:
    """Counts questions to the evaluator, and recounts of nodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions = self.recounts = 0
        ask, recount = selecting._ask, Spare._devices

        def asks(*some: Any) -> bool | str:
            self.questions += 1
            return ask(*some)

        def recounts(*some: Any) -> Any:
            self.recounts += 1
            return recount(*some)

        monkeypatch.setattr(selecting, "_ask", asks)
        monkeypatch.setattr(Spare, "_devices", recounts)

    def take(self) -> tuple[int, int]:
        found, self.questions, self.recounts = (self.questions, self.recounts), 0, 0
        return found


def publish(alone: Alone, number: int, generation: int = 1) -> None:
    """Four devices on a node; each is another one to an expression about its index."""
    made = [device(f"port-{i}", index=number * 4 + i, uuid=f"{generation}-{i}") for i in range(4)]
    catalog = alone.mirror.around.devices.catalog
    catalog.slices[f"s{number}"] = slices(f"n{number}", made, DRIVER, generation=generation)
    catalog.changed()
    alone.mirror.surroundings(alone.mirror.around)


def claims(alone: Alone, *names: str, text: str = 'device.attributes["{}"].index != {}', first: int = 100) -> None:
    around = alone.mirror.around
    around.devices.catalog.classes["nics"] = device_class("nics", f'device.driver == "{DRIVER}"')
    for number, name in enumerate(names):
        made = claim(name, asking("nics", 1, text.format(DRIVER, first + number)))
        around.devices.claims[made.key] = made
    alone.mirror.surroundings(around)
    for name in names:
        alone.mirror.pod(using(pod(name), name))


def test_what_expressions_mean_is_found_out_once_for_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Alone(nodes=10)
    for number in range(10):
        publish(alone, number)
    asked = Asked(monkeypatch)
    claims(alone, *(f"c{number}" for number in range(5)))
    alone.mirror.news()
    assert asked.take()[0] <= 5 * 40 + 40, "each of every device"
    alone.mirror.pod(pod("unrelated", on="n0"))
    alone.mirror.news()
    asked.take()
    alone.mirror.pod_gone("uid-unrelated")
    alone.mirror.news()
    assert asked.take() == (0, 0), "somebody went who had no claims"
    publish(alone, 3, generation=2)
    alone.mirror.news()
    questions, recounts = asked.take()
    assert questions <= 5 * 4 + 4 and recounts == 10, "of the devices of one slice"
    alone.mirror.pod_gone("uid-c0")
    alone.mirror.news()
    assert asked.take() == (0, 10)


async def test_a_namespace_with_too_many_expressions_waits_and_nothing_is_kept_of_those_that_went() -> None:
    alone = Alone(nodes=2)
    publish(alone, 0)
    names = [f"c{number:03}" for number in range(MOST_EXPRESSIONS_OF_ONE)]
    claims(alone, *names)
    plan = await alone.turn()
    catalog = alone.mirror.around.devices.catalog
    assert sum(kind.weight for kind in catalog._first) <= MOST_EXPRESSIONS_OF_ONE
    refused = {gang: told for gang, told in why(plan).items() if "too many expressions" in told}
    assert len(refused) == MOST_EXPRESSIONS_OF_ONE // 2, "each has one of its class, and its own"
    assert all(f"of at most {MOST_EXPRESSIONS_OF_ONE}" in told for told in refused.values())
    for name in names[: MOST_EXPRESSIONS_OF_ONE // 2]:
        alone.mirror.pod_gone(f"uid-{name}")
    for _ in range(3):
        plan = await alone.turn()
    assert not any("too many expressions" in told for told in why(plan).values()), "the others are counted now"
    for name in names:
        alone.mirror.pod_gone(f"uid-{name}")
    for _ in range(3):
        await alone.turn()
    claims(alone, *names, first=1000)  # all others than before
    for _ in range(3):
        await alone.turn()
    assert len(alone.mirror._spare._kinds) <= MOST_EXPRESSIONS_OF_ONE // 2
    assert len(catalog.selectors._read) <= len(names) + 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1, 2].all(a, [3, 4].all(b, a + b >= 0))", "one loop"),
        ("cel.bind(a, 'x', cel.bind(b, a + a, cel.bind(c, b + b, c != a)))", "one loop, or 2 names"),
        (f"[{', '.join(['1'] * 200)}].all(a, a == 1)", "characters: at most 256 are read of such a one"),
        (f"true || device.driver == '{'x' * 2048}'", "at most 2048 are read"),
        (f"r'\\' == r'\\' && [1].all(a, [1].all(b, a == b)) && '{'x' * 10}' != ''", "one loop"),
    ],
)
async def test_an_expression_that_could_cost_much_is_not_asked(
    text: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Alone()
    publish(alone, 0)
    asked = Asked(monkeypatch)
    claims(alone, "wild", text=text.replace("{", "{{").replace("}", "}}"))
    plan = await alone.turn()
    (found,) = why(plan).values()
    assert found.startswith("Unsupported") and told in found
    assert len(found) < 600
    assert asked.take()[0] == 0


async def test_texts_do_not_grow_without_end() -> None:
    alone = Alone()
    publish(alone, 0)
    grows = "'aaaaaaaa'" + ".replace('a', 'aaaaaaaa')" * 20
    claims(alone, "wild", text=f"{grows} != ''")
    plan = await alone.turn()
    (found,) = why(plan).values()
    assert found.startswith("Malformed") and "replace() makes a text of more than" in found


# -- a resize in place ------------------------------------------------------------------------------------------------


def resized(spec: int, given: int, *, sidecar: bool = False, impossible: bool = False) -> Pod:
    made = written("resized", on="n0")
    container = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": str(spec)}}}
    made["spec"]["initContainers" if sidecar else "containers"] = [container]
    if sidecar:
        made["spec"]["containers"] = [{"name": "main"}]
    in_force = {"requests": {"cpu": str(given)}}
    status = {"name": "side", "resources": in_force, "allocatedResources": {"cpu": str(given)}}
    made["status"]["initContainerStatuses" if sidecar else "containerStatuses"] = [status]
    if impossible:
        made["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return foreign(made)


def whole(spec: int, given: int) -> Pod:
    made = written("resized", on="n0")
    made["spec"] |= {"containers": [{"name": "main"}], "resources": {"requests": {"cpu": str(spec)}}}
    in_force = {"requests": {"cpu": str(given)}}
    made["status"] |= {"resources": in_force, "allocatedResources": {"cpu": str(given)}}
    return foreign(made)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (resized(40, 10), resized(40, 10, impossible=True)),
        (resized(10, 40, sidecar=True), resized(10, 10, sidecar=True)),
        (whole(10, 40), whole(10, 10)),
    ],
    ids=["impossible", "sidecar", "whole pod"],
)
def test_a_resize_counts_as_soon_as_the_status_says_it(before: Pod, after: Pod) -> None:
    alone = Alone()
    alone.mirror.news()
    alone.mirror.pod(before)
    alone.mirror.news()
    known = alone.mirror.node_known("n0")
    assert known is not None and known.foreign.cpu_milli == 40_000
    alone.mirror.pod(after)
    alone.mirror.news()
    known = alone.mirror.node_known("n0")
    assert known is not None and known.foreign.cpu_milli == 10_000
