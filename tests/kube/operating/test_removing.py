"""Taking Optimus out of a cluster, in the right order and in the wrong one, on a real server."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from typer.testing import CliRunner, Result

from hack.controlplane import ControlPlane, missing_toolchain
from optimus.api.crds import definitions
from optimus.cli.main import app
from optimus.drivers.kube.installing import NAMESPACE, Installation, objects
from tests.kube.body.clusters import Stand, until

JOB = """
apiVersion: optimus.dev/v1alpha1
kind: UnifiedJob
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicaSpec: {{minReplicas: 2, maxReplicas: 2, gpu: {{count: 1}}}}
  template: {{spec: {{schedulerName: {scheduler}, containers: [{{name: main, image: none}}]}}}}
"""


class Team(Stand):
    def kubectl(self, *words: str, given: str = "") -> str:
        done = subprocess.run(self.plane.kubectl(*words), input=given, text=True, check=False, capture_output=True)
        return (done.stdout + done.stderr).strip()

    def runs(self, name: str) -> None:
        """A UnifiedJob of two pods."""
        self.apply(JOB.format(name=name, namespace=self.namespace, scheduler=self.scheduler))
        phase = ("get", "unifiedjob", name, "-n", self.namespace, "-o", "jsonpath={.status.phase}")
        until(lambda: self.kubectl(*phase) == "Running", f"{name} runs")

    def left(self) -> list[str]:
        return self.kubectl("get", "unifiedjobs,pods", "-n", self.namespace, "-o", "name").split()

    def let_go(self, *words: str, user: str = "admin") -> Result:
        return CliRunner().invoke(app, ["install", "--let-go", *words, f"--kubeconfig={self.plane.kubeconfig(user)}"])


@pytest.fixture
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """On a server of this story alone: it asks whether any controller of the cluster runs."""
    if why := missing_toolchain():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("removing")
    with ControlPlane(folder, controllers=True, kwok=True, users={"alice": "guests"}) as plane:
        made = Team(plane, "team")
        made.serve_queues()
        made.nodes(1)
        yield made
        made.stop()


def test_jobs_first_and_then_the_controller_leaves_nothing(team: Team) -> None:
    team.start()
    team.runs("train")
    assert "deleted" in team.kubectl("delete", "unifiedjobs", "--all", "--all-namespaces", "--timeout=60s")
    until(lambda: team.left() == [], "nothing is left")
    team.stop()
    until(lambda: "NotFound" in team.kubectl("get", "namespace", "team"), "and its namespace goes")


def test_what_hangs_without_a_controller_is_let_go(team: Team) -> None:
    (controller,) = [team.start("--lease-seconds=3")]
    team.runs("deleted")
    team.runs("kept")
    running = team.let_go()
    assert running.exit_code == 1 and "a controller runs" in running.stderr, running.stderr
    assert "has the lease team/optimus-scheduler" in running.stderr and "let go" not in running.stderr
    assert team.let_go(user="alice").exit_code == 1, "with the rights of who asks"

    controller.send_signal(signal.SIGKILL)  # it gives no lease back
    controller.wait()
    team.kubectl("delete", "unifiedjob", "deleted", "-n", "team", "--wait=false")
    until(lambda: "deletionTimestamp" in team.kubectl("get", "unifiedjob", "deleted", "-n", "team", "-o", "yaml"), "so")
    assert "unifiedjob.optimus.dev/deleted" in team.left(), "nobody lets it go"

    tried = team.let_go("--dry-run")
    assert tried.exit_code == 0 and "unifiedjob/team/deleted would be let go" in tried.stderr, tried.stderr
    assert "unifiedjob.optimus.dev/deleted" in team.left(), "trying changes nothing"
    done = team.let_go()
    assert done.exit_code == 0, done.stderr
    assert "waiting 3 s to see whether that is so" in done.stderr
    assert "pod/team/kept-worker-0 let go" in done.stderr and "unifiedjob/team/deleted let go" in done.stderr
    assert "6 let go, 1 of them deleted before" in done.stderr
    kept = ["pod/kept-worker-0", "pod/kept-worker-1", "unifiedjob.optimus.dev/kept"]
    until(lambda: sorted(team.left()) == kept, "what was deleted goes, and what was not stays")
    assert "nothing is held by a controller" in team.let_go().stderr, "again: there is nothing to do"

    team.kubectl("delete", "namespace", "team", "--wait=false")
    until(lambda: "NotFound" in team.kubectl("get", "namespace", "team"), "a namespace with a job in it goes")


def test_a_namespace_and_the_definition_that_hang_already(team: Team) -> None:
    controller = team.start("--lease-seconds=3")
    team.runs("train")
    controller.terminate()  # uninstalled: it gives the lease back
    controller.wait()
    team.kubectl("delete", "crd", "unifiedjobs.optimus.dev", "--wait=false")
    team.kubectl("delete", "namespace", "team", "--wait=false")
    marked = ("get", "pods,unifiedjobs", "-n", "team", "-o", "jsonpath={.items[*].metadata.deletionTimestamp}")
    until(lambda: len(team.kubectl(*marked).split()) == 3, "all of it is marked, and stays")
    done = team.let_go()
    assert done.exit_code == 0 and "waiting" not in done.stderr, done.stderr
    until(lambda: "NotFound" in team.kubectl("get", "namespace", "team"), "the namespace goes")
    until(lambda: "NotFound" in team.kubectl("get", "crd", "unifiedjobs.optimus.dev"), "and the definition")
    assert team.let_go().exit_code == 0, "also where the server does not know UnifiedJobs any more"
    team.apply(yaml.safe_dump_all(definitions()))


def test_a_deployment_that_would_start_it_again(team: Team) -> None:
    rest = [one for one in objects(Installation()) if one["kind"] in ("Namespace", "Deployment", "ServiceAccount")]
    team.apply(yaml.safe_dump_all(rest))
    refused = team.let_go()
    assert refused.exit_code == 1
    assert f"deployment {NAMESPACE}/optimus runs the controller: delete the UnifiedJobs while it does" in " ".join(
        refused.stderr.split()
    )
    team.kubectl("scale", "deployment", "optimus", "-n", NAMESPACE, "--replicas=0")
    assert team.let_go().exit_code == 0
