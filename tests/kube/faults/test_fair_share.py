"""A server that throttles by itself (API priority and fairness), and leaves a scheduler a small share: what it sends at
once is refused with 429 for the most part, by the real server. It goes on, binds all, and keeps its lease."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from hack.controlplane import ControlPlane, missing_toolchain
from tests.kube.body.clusters import until
from tests.kube.faults.checking import settle
from tests.kube.faults.worlds import World

USER = "scheduler"
SMALL_SHARE = f"""
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: small}}
spec:
  type: Limited
  limited:
    {{nominalConcurrencyShares: 1, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {{type: Reject}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: small}}
spec:
  priorityLevelConfiguration: {{name: small}}
  matchingPrecedence: 100
  rules:
    - subjects: [{{kind: User, user: {{name: {USER}}}}}]
      resourceRules: [{{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {USER}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}
subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {USER}}}]
"""


@pytest.fixture
def throttled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if why := missing_toolchain():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("fair")
    with ControlPlane(folder, controllers=True, kwok=True, fair=True, users={USER: "schedulers"}) as plane:
        apply = plane.kubectl("apply", "-f", "-")
        subprocess.run(apply, input=SMALL_SHARE, text=True, check=True, capture_output=True)
        world = World(plane, "throttled")
        yield world
        world.stop()


def test_a_scheduler_with_a_small_share_goes_on(throttled: World) -> None:
    world = throttled
    world.nodes(2, gpus=12)
    world.lead(f"--kubeconfig={world.plane.kubeconfig(USER)}")
    until(lambda: world.leader() is not None, "it leads")
    before = world.leader()
    for name in ("first", "second"):
        world.job(name, 12, suspended=True)
    until(lambda: len(world.bound()) == 24, "everything is bound")
    seen = settle(world)
    assert seen.overbooked == 0
    assert refused(world) > 0, "the server has refused some of it"
    assert world.leader() == before, "and nobody has lost a lease"


def refused(world: World) -> int:
    told = world.plane.get("/metrics").decode()
    lines = re.findall(
        r'^apiserver_flowcontrol_rejected_requests_total\{.*priority_level="small".*\} (\d+)', told, re.M
    )
    return sum(map(int, lines))
