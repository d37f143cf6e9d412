"""Queue and NodePool as the server takes them: good ones are kept as written, wrong ones are refused in words."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
import yaml

from hack.controlplane import ControlPlane
from optimus.api.crds import definitions
from optimus.drivers.kube.objects import Anything, Meta
from optimus.drivers.kube.queues import read_pool, read_queue

GOOD_QUEUE = {
    "gpu": {"guarantee": 4, "limit": "unlimited"},
    "pools": [{"name": "a100", "gpu": {"guarantee": "0.5", "limit": 8, "weight": 2}, "memory": {"limit": "2Ti"}}],
    "maxWait": "6h",
    "maxWaitAction": "first",
    "minRuntimeBeforeReclaim": "10m",
    "namespaces": ["vision"],
    "state": "open",
    "rank": -1,
}
GOOD_POOL = {"selector": {"gpu": "a100"}, "topologyLevels": ["zone", "rack"], "placement": {"inference": "spread"}}
WRONG_QUEUES = [
    ({"gpu": {"guarantee": -1}}, 'is no gpu: write 8, "0.5" or 500m'),
    ({"gpu": {"guarantee": "lots"}}, 'is no gpu: write 8, "0.5" or 500m'),
    ({"gpu": {"limit": "none"}}, 'is no gpu: write 8, "0.5" or 500m or unlimited'),
    ({"cpu": {"guarantee": "4 cores"}}, 'is no cpu: write 4, "0.5" or 500m'),
    ({"memory": {"limit": "16GB!"}}, "is no memory: write 16Gi, 512Mi or 2G or unlimited"),
    ({"memory": {"guarantee": "-1Gi"}}, "is no memory: write 16Gi, 512Mi or 2G"),
    ({"gpu": {"weight": -2}}, "should be greater than or equal to 0"),
    ({"gpu": {"weight": "heavy"}}, "must be of type integer"),
    ({"gpu": {"limit": 0.5}}, "must be of type"),
    ({"gpu": 4}, "must be of type object"),
    ({"state": "shut"}, 'supported values: "open", "stopped", "draining"'),
    ({"maxWaitAction": "cry"}, 'supported values: "first", "fail"'),
    ({"maxWait": "soon"}, "is no duration: write 30s, 2h30m or 1d"),
    ({"maxRuntime": -5}, "is no duration: write 30s, 2h30m or 1d"),
    ({"idleTimeout": "5 minutes"}, "is no duration: write 30s, 2h30m or 1d"),
    ({"minRuntimeBeforeReclaim": "1y"}, "is no duration: write 30s, 2h30m or 1d"),
    ({"parent": "wrong"}, "a queue cannot be its own parent; leave parent out for one at the top"),
    ({"parent": 7}, "must be of type string"),
    ({"rank": "high"}, "must be of type integer"),
    ({"gpus": 3}, 'unknown field "spec.gpus"'),
    ({"gpu": {"guaranty": 3}}, 'unknown field "spec.gpu.guaranty"'),
    ({"pools": [{"name": "a"}, {"name": "a"}]}, "Duplicate value"),
    ({"pools": [{"gpu": {"limit": 1}}]}, "spec.pools[0].name: Required value"),
    ({"pools": {"a100": {}}}, 'unknown field "spec.pools.a100"'),
    (
        {"gpu": {"limit": 1}, "pools": [{"name": "default", "gpu": {"limit": 2}}]},
        "the quotas of pool default are given twice: under pools, and beside it",
    ),
    ({"namespaces": "vision"}, "must be of type array"),
    ({"namespaces": [1]}, "must be of type string"),
    ({"allowedClasses": "inference"}, "must be of type array"),
    ({"accelerators": {"fpga": {"limit": "many"}}}, "is no count: write a whole number or unlimited"),
    ({"accelerators": {"fpga": {"guarantee": -1}}}, "should be greater than or equal to 0"),
    ({"maxGpusPerWorkload": "all"}, 'is no gpu: write 8, "0.5" or 500m'),
    ({"pools": [{"name": f"p{i}"} for i in range(40)]}, "must have at most 32 items"),
    ({"namespaces": [f"n{i}" for i in range(1_025)]}, "must have at most 1024 items"),
    ({"namespaceSelector": {"team": "vision"}}, 'unknown field "spec.namespaceSelector.team"'),
    ({"namespaceSelector": {"matchLabels": {"team": 3}}}, "must be of type string"),
    (
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
        'supported values: "In", "NotIn"',
    ),
    ({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn need values"),
    ({"namespaceSelector": {"matchExpressions": [{"operator": "Exists"}]}}, "matchExpressions[0].key: Required value"),
]
WRONG_POOLS = [
    ({"selector": "gpu=a100"}, "must be of type object"),
    ({"selector": {"gpu": 1}}, "must be of type string"),
    ({"topologyLevels": "rack"}, "must be of type array"),
    ({"topologyLevels": [1]}, "must be of type string"),
    ({"placement": "spread"}, "must be of type object"),
    ({"placement": {"inference": "scatter"}}, 'supported values: "pack", "spread"'),
    ({"interferenceLimit": "much"}, 'is no share: write "0.8", 800m or 80%'),
    ({"interferenceLimit": -1}, 'is no share: write "0.8", 800m or 80%'),
    ({"topology": ["rack"]}, 'unknown field "spec.topology"'),
]


@pytest.fixture(scope="module")
def served(plane: ControlPlane) -> ControlPlane:
    """The server with our resources."""
    done = _apply(plane, yaml.safe_dump_all(definitions()))
    assert done.returncode == 0, done.stderr
    for name in ("queues", "nodepools"):
        words = plane.kubectl("wait", "--for=condition=Established", f"crd/{name}.optimus.dev", "--timeout=60s")
        subprocess.run(words, check=True, capture_output=True)
    time.sleep(1)  # the server says so a moment before its discovery does
    return plane


def _apply(plane: ControlPlane, text: str) -> subprocess.CompletedProcess[str]:
    words = plane.kubectl("apply", "-f", "-")
    return subprocess.run(words, input=text, text=True, check=False, capture_output=True)


def _object(kind: str, name: str, spec: object) -> str:
    made = {"apiVersion": "optimus.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(made)


def test_good_ones_are_kept_as_written_and_read_as_meant(served: ControlPlane) -> None:
    done = _apply(served, _object("Queue", "good", GOOD_QUEUE) + "---\n" + _object("NodePool", "good", GOOD_POOL))
    assert done.returncode == 0, done.stderr
    queue = json.loads(served.get("/apis/optimus.dev/v1alpha1/queues/good"))
    assert queue["spec"] == GOOD_QUEUE
    read, _ = read_queue(Anything(metadata=Meta(name="good"), spec=queue["spec"]))
    assert {quota.pool for quota in read.quotas} == {"a100", "default"}
    assert read.policy.max_wait_ms == 6 * 3_600_000
    pool = json.loads(served.get("/apis/optimus.dev/v1alpha1/nodepools/good"))
    made = read_pool(Anything(metadata=Meta(name="good"), spec=pool["spec"]))
    assert made.levels == ("zone", "rack") and made.selector == {"gpu": "a100"}


def test_a_queue_of_many_namespaces(served: ControlPlane) -> None:
    """Hundreds by name, or any number by their labels."""
    rules = [{"key": "unit", "operator": "NotIn", "values": ["guests"]}, {"key": "gpus", "operator": "Exists"}]
    spec = {
        "namespaces": [f"team-{number}" for number in range(1_024)],
        "namespaceSelector": {"matchLabels": {"tier": "research"}, "matchExpressions": rules},
    }
    done = _apply(served, _object("Queue", "wide", spec))
    assert done.returncode == 0, done.stderr
    kept = json.loads(served.get("/apis/optimus.dev/v1alpha1/queues/wide"))["spec"]
    read, among = read_queue(Anything(metadata=Meta(name="wide"), spec=kept))
    assert len(read.namespaces) == 1_024 and among is not None
    assert among.accepts({"tier": "research", "gpus": ""})
    assert not among.accepts({"tier": "research"}) and not among.accepts({"gpus": ""})
    assert not among.accepts({"tier": "research", "gpus": "", "unit": "guests"})


def test_people_see_them_by_short_names_and_columns(served: ControlPlane) -> None:
    _apply(served, _object("Queue", "seen", GOOD_QUEUE))
    told = subprocess.run(served.kubectl("get", "oq", "seen"), check=True, capture_output=True, text=True).stdout
    shown = ["NAME", "PARENT", "STATE", "GPUS", "GUARANTEE", "BORROWED", "RUNNING", "WAITING", "READY", "AGE"]
    assert told.split()[:10] == shown


@pytest.mark.parametrize(("spec", "says"), WRONG_QUEUES, ids=lambda value: str(value)[:60])
def test_a_wrong_queue_is_refused_in_words(served: ControlPlane, spec: object, says: str) -> None:
    done = _apply(served, _object("Queue", "wrong", spec))
    assert done.returncode != 0 and says in done.stderr, done.stderr


@pytest.mark.parametrize(("spec", "says"), WRONG_POOLS, ids=lambda value: str(value)[:60])
def test_a_wrong_pool_is_refused_in_words(served: ControlPlane, spec: object, says: str) -> None:
    done = _apply(served, _object("NodePool", "wrong", spec))
    assert done.returncode != 0 and says in done.stderr, done.stderr
