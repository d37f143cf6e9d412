"""What a tenant may write to spite everybody: every word of ours, with values that no reader expects."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from optimus.drivers.kube.grouping.overrides import PREFIX
from optimus.drivers.kube.objects import Anything, Pod

WORDS = (
    *("queue", "scheduler", "group", "role", "slot", "term", "suspended", "hold", "min-members", "class", "priority"),
    *("preemptible", "pools", "topology", "preferred-topology", "checkpoint-grace", "expected-duration", "family"),
    *("gpu-fraction", "gpu-memory", "gpu-models", "offered-node"),
)
LONG = "9" * 5_000
TEXTS = (
    *("", " ", "-", "--", "0", "-0", "-1", "+1", "1_000", "0x10", "1.5", "1e9", "1e400", "-1e400", "nan", "inf"),
    *("9999999999999999999", "-9999999999999999999", "9223372036854775807", "9223372036854775808", "2147483648"),
    *(
        "999999999",
        "100000",
        "100001",
        LONG,
        f"-{LONG}",
        f"1.{LONG}",
        f"{LONG}s",
        "²",
        "१२",
        "٣",
        "\u2028",
        "💥",
        "\x00",
    ),
    *("true", "false", "null", "{}", "[]", "default", "host", "kubernetes.io/hostname", "a,b,,a", ",", "=", "a=", "=1"),
    *("a100=0", "a100=-1x", "a100=1e400", f"a100={LONG}", "a100=1,A100=2", "0.5", "0.0001", "0.999", "1000m", "500m"),
    *("10Gi", "1e30Gi", "-1Gi", "9999999999999999999Gi", "30s", "1w1d", "1d1w", "pod-0", "pod-99999999999999999999"),
    *(f"pod-{LONG}", "worker-²", "worker--1", "-5", "pod-999999999", "none", "interactive", "unattended", "inference"),
)
QUANTITIES = (
    *("0", "1", "-1", "8", "1e400", "1e-400", "1e60", "9999999999999999999", "9007199254740993", "0.5", "500m", "1n"),
    *("", " ", "1Ei", "99999999Ei", "NaN", "²", LONG, "1e", "Gi", 1, -1, 2**62, 2**70, 1.5, 1e300),
)
RESOURCES = (
    *("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-", "example.com/fpga"),
    *(
        "ephemeral-storage",
        "hugepages-2Mi",
        "hugepages-",
        "attachable-volumes-x",
        "/",
        "x/",
        "/x",
        "~pods",
        "pods",
        "💥/x",
    ),
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    100_000,
    100_001,
    2**31 - 1,
    2**31,
    -(2**31),
    2**53,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    2**70,
)
KEYS = ("kubernetes.io/hostname", "", "optimus.dev/queue", "💥", "host", "nvlink")
ODD: tuple[Any, ...] = (None, "", "x", 0, -1, 2**70, 1.5, 1e300, True, [], {}, [{}], {"a": {}}, [None], [[]])

texts = st.sampled_from(TEXTS)
numbers = st.sampled_from(NUMBERS)
words = st.dictionaries(st.sampled_from([PREFIX + word for word in WORDS]), texts, max_size=4)
quantities = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(QUANTITIES), max_size=3)
odd = st.sampled_from(ODD)


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


selectors = _some(
    matchLabels=st.dictionaries(st.sampled_from(KEYS), texts, max_size=2),
    matchExpressions=st.lists(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(KEYS),
                "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "💥")),
                "values": st.lists(texts, max_size=2),
            }
        ),
        max_size=2,
    ),
)
pod_terms = st.lists(
    st.fixed_dictionaries({"topologyKey": st.sampled_from(KEYS)}, optional={"labelSelector": selectors}), max_size=2
)
affinities = _some(
    nodeAffinity=_some(
        requiredDuringSchedulingIgnoredDuringExecution=_some(nodeSelectorTerms=st.lists(selectors, max_size=2))
    ),
    podAffinity=_some(requiredDuringSchedulingIgnoredDuringExecution=pod_terms),
    podAntiAffinity=_some(requiredDuringSchedulingIgnoredDuringExecution=pod_terms),
)
spreads = st.lists(
    st.fixed_dictionaries(
        {
            "maxSkew": numbers,
            "topologyKey": st.sampled_from(KEYS),
            "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway", "")),
        },
        optional={"minDomains": numbers, "labelSelector": selectors},
    ),
    max_size=2,
)
ports = st.lists(_some(hostPort=numbers, protocol=texts, hostIP=texts), max_size=2)
resources = _some(requests=quantities, limits=quantities)
containers = st.lists(_some(name=texts, resources=resources, ports=ports, restartPolicy=texts), min_size=1, max_size=2)
specs = _some(
    priority=numbers,
    priorityClassName=texts,
    terminationGracePeriodSeconds=numbers,
    nodeSelector=st.dictionaries(st.sampled_from(KEYS), texts, max_size=2),
    affinity=affinities,
    tolerations=st.lists(_some(key=texts, operator=texts, value=texts, effect=texts), max_size=2),
    topologySpreadConstraints=spreads,
    initContainers=containers,
    overhead=quantities,
    resources=resources,
    volumes=st.lists(_some(name=texts, persistentVolumeClaim=st.fixed_dictionaries({"claimName": texts})), max_size=1),
    schedulingGroup=_some(podGroupName=texts),
)
pods = st.fixed_dictionaries(
    {
        "annotations": words,
        "labels": words,
        "spec": specs,
        "containers": containers,
        "ours": st.booleans(),
        "bound": st.booleans(),
        "owned": st.booleans(),
    }
)
templates = st.fixed_dictionaries({"metadata": _some(annotations=words, labels=words), "spec": specs})
jobs = st.fixed_dictionaries(
    {
        "annotations": words,
        "spec": st.one_of(
            odd,
            _some(
                parallelism=st.one_of(numbers, odd),
                completions=st.one_of(numbers, odd),
                suspend=st.one_of(st.booleans(), odd),
                backoffLimit=odd,
                completionMode=texts,
                template=st.one_of(templates, odd),
            ),
        ),
        "status": st.one_of(
            odd,
            _some(
                conditions=st.one_of(odd, st.lists(_some(type=texts, status=texts), max_size=1)),
                startTime=texts,
                completionTime=texts,
            ),
        ),
    }
)


def told_pod(number: int, wish: dict[str, Any]) -> Pod | None:
    """As a watch would tell it; None if it cannot even be decoded, which the reflector says."""
    meta: dict[str, Any] = {
        "name": f"hostile-{number}",
        "namespace": "evil",
        "uid": f"uid-{number}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": wish["labels"],
        "annotations": wish["annotations"],
    }
    if wish["owned"]:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "hostile", "uid": "uid-job", "controller": True}
        meta["ownerReferences"] = [owner]
    spec = {**wish["spec"], "containers": wish["containers"], "schedulerName": "optimus" if wish["ours"] else "another"}
    if wish["bound"]:
        spec["nodeName"] = "n0"
    return _decoded({"metadata": meta, "spec": spec, "status": {"phase": "Running"}}, Pod)


def told_job(wish: dict[str, Any]) -> Anything | None:
    meta = {"name": "hostile", "namespace": "evil", "uid": "uid-job", "annotations": wish["annotations"]}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": wish["spec"], "status": wish["status"]}
    return _decoded(made, Anything)


def _decoded(made: dict[str, Any], kind: Any) -> Any:
    try:
        return msgspec.json.decode(json.dumps(made).encode(), type=kind)
    except msgspec.ValidationError:
        return None
