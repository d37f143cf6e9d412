"""A real controller with exactly the rights of its role: everything it needs is allowed, and nothing else is."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from hack.controlplane import ControlPlane
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.installing import NAME, NAMESPACE
from optimus.drivers.kube.rights import WATCHED, Right, controller_rights
from tests.kube.body import claims
from tests.kube.body.clusters import until
from tests.kube.body.test_two_teams import job, suspended
from tests.kube.body.test_volumes_that_wait import claim, local_volume, pod, selected, storage_class
from tests.kube.operating.installed import ACCOUNT, Installed, ask, audited

REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web, optimus.dev/queue: {queue}}}, annotations: {{optimus.dev/preemptible: "true"}}}}
    spec:
      schedulerName: {scheduler}
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "1"}}}}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web, namespace: {namespace}}}
spec: {{minAvailable: 4, selector: {{matchLabels: {{app: web}}}}}}
"""
NOT_PLAYED = {"get": {"pods"}, "patch": {"events"}}
"""A bind nobody heard of, and an event that is repeated for ten seconds: other stories play them."""
UNIFIED_JOB = """
apiVersion: optimus.dev/v1alpha1
kind: UnifiedJob
metadata: {{name: short, namespace: {namespace}}}
spec:
  queue: {queue}
  replicaSpec: {{minReplicas: 2}}
  ttlSecondsAfterFinished: 1
  template:
    metadata: {{annotations: {{optimus.dev/seconds: "1"}}}}
    spec: {{schedulerName: {scheduler}, containers: [{{name: main, image: none}}]}}
"""


def test_all_it_needs_and_nothing_is_refused(stand: Installed) -> None:
    """A UnifiedJob, a gang, a loan taken back by suspending, a preemption against a disruption budget, volumes and
    devices that wait for their pod, reasons, status, election."""
    owner = stand.queue("own", gpu={"guarantee": 8}, namespaces=[stand.namespace])
    borrower = stand.queue("lend", gpu={"guarantee": 0}, namespaces=[stand.namespace])
    stand.nodes(2, gpus=4)
    first = stand.start("--lease-seconds=3")
    _two_volumes(stand)
    _a_device(stand)
    _a_job_of_ours(stand, owner)
    job(stand, "lent", borrower, 4)
    until(lambda: len(stand.bound("lent")) == 4, "a gang is bound")
    stand.apply(REPLICA_SET.format(namespace=stand.namespace, queue=borrower, scheduler=stand.scheduler))
    until(lambda: len(stand.bound("web")) == 4, "and pods that can only be evicted")
    job(stand, "mine", owner, 8)
    until(lambda: len(stand.bound("mine")) == 8, "what was lent is taken back, whatever budgets say")
    assert suspended(stand, "lent")
    until(lambda: any(_waits_with_a_reason(pod) for pod in stand.pods()), "and whoever has left is told why it waits")
    queue = f"/apis/optimus.dev/v1alpha1/queues/{owner}"
    until(lambda: stand.thing(queue).get("status", {}).get("gpus") == "8", "the queue says what it has")
    port = stand.port
    second = stand.start("--lease-seconds=3")
    until(lambda: stand.told("/readyz")[0] == 200, "another one is ready to follow")
    assert stand.port != port and not stand.leads()
    first.terminate()
    assert first.wait(20) == 0
    until(stand.leads, "and follows")
    second.terminate()
    second.wait(20)

    answered = list(audited(stand.plane))
    refused = [
        (one["verb"], one["objectRef"])
        for one in answered
        if one["responseStatus"]["code"] == 403 and one["userAgent"].startswith("optimus")
    ]
    assert refused == [], "nothing it needs is missing"
    called = {(one["verb"], _resource(one)) for one in answered if one["userAgent"].startswith("optimus")}
    allowed = {(verb, _named(right)) for right in controller_rights() for verb in right.verbs}
    assert {pair for pair in called if pair[1]} <= allowed, "the list names every call"
    assert ("create", "/pods/binding") in called and ("create", "/pods/eviction") in called
    # kinds of operators are served where other stories of this server have installed them; this one plays none of them
    of_operators = {kind.name.rpartition("/")[0] for kind in shipped_kinds()} - {"", "apps", "batch"}
    served = {resource for _, resource in called if resource.partition("/")[0] not in of_operators}
    never = {
        (verb, resource)
        for verb, resource in allowed - called
        if resource in served and verb not in WATCHED and resource.rpartition("/")[2] not in NOT_PLAYED.get(verb, set())
    }
    # owners that are watched are asked for by name only when the watch is late
    assert {pair for pair in never if pair[0] != "get"} == set(), "and no more than is called"

    secrets = {"the token": stand.token, "the key": stand.plane.credentials.key.read_text().splitlines()[5]}
    secrets["a part of the token"] = stand.token.split(".")[2]
    for what, secret in secrets.items():
        assert secret not in stand.log(), f"{what} is in the log"
    assert '"message"' in stand.log(), "there is a log to look at"


def _a_job_of_ours(stand: Installed, queue: str) -> None:
    """From its start until it is forgotten."""
    stand.apply(UNIFIED_JOB.format(namespace=stand.namespace, queue=queue, scheduler=stand.scheduler))
    jobs = f"/apis/optimus.dev/v1alpha1/namespaces/{stand.namespace}/unifiedjobs"
    until(lambda: any(one["metadata"]["name"].startswith("short-") for one in stand.pods()), "its pods are made")
    until(lambda: stand.thing(jobs)["items"] == [], "it has run, and its time is over")


def _a_device(stand: Installed) -> None:
    claims.publish(stand, stand.mine()[0], [claims.device("port")], "nic.example.com")
    claims.claim(stand, "port", claims.asking(claims.device_class(stand, "nic", 'device.driver == "nic.example.com"')))
    claims.pod(stand, "talker", uses="port")
    until(lambda: "talker" in [one["metadata"]["name"] for one in stand.bound()], "it has got its device")


def _two_volumes(stand: Installed) -> None:
    """One that is there, and one that is to be made."""
    local = storage_class(stand, "local", provisioner="kubernetes.io/no-provisioner")
    disks = storage_class(stand, "disks", provisioner="disks.example")
    local_volume(stand, "disk", local, stand.mine()[0])
    for name, kind in (("there", local), ("made", disks)):
        claim(stand, name, kind)
        pod(stand, f"reads-{name}-0", uses=name, gpus=0)
    until(lambda: len(stand.bound("reads-there")) == 1, "a pod is where its volume is")
    until(lambda: selected(stand, "made") != "", "and another is asked for")


def _waits_with_a_reason(pod: dict[str, Any]) -> bool:
    told = [one.get("message") for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
    return not pod["spec"].get("nodeName") and any(told)


def _named(right: Right) -> str:
    return f"{right.group}/{right.resource}"


def _resource(event: dict[str, dict[str, str]]) -> str:
    ref = event.get("objectRef", {})
    if not ref.get("resource"):
        return ""
    below = f"/{ref['subresource']}" if "subresource" in ref else ""
    return f"{ref.get('apiGroup', '')}/{ref['resource']}{below}"


POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
ROLE = {"metadata": {"name": "r"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
META = {"metadata": {"name": "x"}}
APPLIED = "application/merge-patch+json"
FORBIDDEN: tuple[tuple[Any, ...], ...] = (
    ("GET", "/api/v1/secrets"),
    ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
    ("GET", "/api/v1/namespaces/kube-system/secrets/x"),
    ("GET", "/api/v1/configmaps"),
    ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps"),
    ("GET", "/api/v1/serviceaccounts"),
    ("GET", "/api/v1/nodes/x"),
    ("POST", "/api/v1/nodes", META),
    ("DELETE", "/api/v1/nodes/x"),
    ("PATCH", "/api/v1/nodes/x", {"spec": {"unschedulable": True}}),
    ("PATCH", "/api/v1/nodes/x/status", {"status": {}}),
    ("GET", "/api/v1/nodes/x/proxy/"),
    ("POST", "/api/v1/namespaces", META),
    ("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"a": "b"}}}),
    ("DELETE", "/api/v1/namespaces/default"),
    ("PUT", "/api/v1/namespaces/default/pods/x", POD),
    ("DELETE", "/api/v1/namespaces/default/pods"),
    ("GET", "/api/v1/namespaces/default/pods/x/log"),
    ("POST", "/api/v1/namespaces/default/pods/x/exec?command=sh&stdout=true"),
    ("POST", "/api/v1/namespaces/default/pods/x/attach"),
    ("POST", "/api/v1/namespaces/default/pods/x/portforward"),
    ("PATCH", "/api/v1/namespaces/default/pods/x/ephemeralcontainers", {"spec": {}}),
    ("PATCH", "/api/v1/namespaces/default/pods/x/resize", {"spec": {}}),
    ("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token", {"spec": {}}),
    ("POST", "/apis/batch/v1/namespaces/default/jobs", META),
    ("DELETE", "/apis/batch/v1/namespaces/default/jobs/x"),
    ("PATCH", "/apis/batch/v1/namespaces/default/jobs/x/status", {"status": {}}),
    ("PATCH", "/apis/apps/v1/namespaces/default/deployments/x", {"spec": {"replicas": 0}}),
    ("PATCH", "/apis/apps/v1/namespaces/default/deployments/x/scale", {"spec": {"replicas": 0}}),
    ("PATCH", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}", {"spec": {"replicas": 0}}),
    ("DELETE", "/apis/apps/v1/namespaces/default/replicasets/x"),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", ROLE),
    ("PATCH", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}", ROLE),
    ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
    ("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles", ROLE),
    ("POST", "/apis/optimus.dev/v1alpha1/queues", META),
    ("PATCH", "/apis/optimus.dev/v1alpha1/queues/x", {"spec": {}}),
    ("DELETE", "/apis/optimus.dev/v1alpha1/queues/x"),
    ("PATCH", "/apis/optimus.dev/v1alpha1/nodepools/x", {"spec": {}}),
    ("POST", "/apis/optimus.dev/v1alpha1/namespaces/default/unifiedjobs", META),
    ("PUT", "/apis/optimus.dev/v1alpha1/namespaces/default/unifiedjobs/x", META),
    ("DELETE", "/apis/optimus.dev/v1alpha1/namespaces/default/unifiedjobs"),
    ("PATCH", "/apis/optimus.dev/v1alpha1/namespaces/default/unifiedjobs/x/scale", {"spec": {"replicas": 0}}),
    ("GET", "/api/v1/services"),
    ("DELETE", "/api/v1/namespaces/default/services/x"),
    ("PATCH", "/api/v1/namespaces/default/services/x", {"spec": {"externalIPs": ["1.2.3.4"]}}),
    ("PUT", "/api/v1/namespaces/default/services/x", META),
    ("PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.optimus.dev", {"spec": {}}),
    ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x"),
    ("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/another"),
    ("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"),
    ("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/optimus-scheduler"),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", META),
    ("GET", "/apis/events.k8s.io/v1/events"),
    ("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/x"),
    ("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", META),
    ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/optimus-queues"),
    ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", META),
    ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", META),
    ("POST", "/api/v1/persistentvolumes", META),
    ("DELETE", "/api/v1/persistentvolumes/x"),
    ("PATCH", "/api/v1/persistentvolumes/x/status", {"status": {}}),
    ("DELETE", "/api/v1/namespaces/default/persistentvolumeclaims/x"),
    ("PATCH", "/apis/storage.k8s.io/v1/storageclasses/x", {"provisioner": "y"}),
    ("GET", "/metrics"),
    ("GET", "/debug/pprof/"),
)


def test_everything_else_is_refused(installed: Installed) -> None:
    plane: ControlPlane = installed.plane
    wrong = []
    for method, path, *body in FORBIDDEN:
        form = APPLIED if method == "PATCH" else "application/json"
        code, text = ask(plane, installed.token, method, path, body[0] if body else None, form)
        if code != 403:
            wrong.append((method, path, code, text[:200]))
    assert wrong == []
    code, text = ask(plane, installed.token, "GET", "/api/v1/nodes")
    assert code == 200, f"the token works: {text}"


def test_nobody_may_be_impersonated(installed: Installed) -> None:
    told = subprocess.run(
        [*installed.plane.kubectl("auth", "can-i", "impersonate", "users"), f"--as={ACCOUNT}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.strip() == "no"


@pytest.mark.parametrize("verb", ["escalate", "bind"])
def test_its_role_cannot_be_widened_by_itself(installed: Installed, verb: str) -> None:
    words = installed.plane.kubectl("auth", "can-i", verb, "clusterroles", f"--as={ACCOUNT}")
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() == "no"
