"""One cluster with a real controller for all stories of a file: two teams, a queue each, one node with eight GPUs."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import yaml
from typer.testing import CliRunner

from hack.controlplane import ControlPlane
from optimus.api.crds import definitions
from optimus.cli.main import app
from optimus.drivers.kube.desk.target import OnCluster
from optimus.kube import load
from tests.kube.body.clusters import Stand, until

JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{optimus.dev/queue: {queue}}}
  annotations: {{optimus.dev/min-members: "{pods}"}}
spec:
  parallelism: {pods}
  completions: {pods}
  suspend: {suspend}
  template:
    spec:
      schedulerName: {scheduler}
      restartPolicy: Never
      containers:
      - {{name: main, image: none, command: [python, train.py], resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}}}
---
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)
        return found


class Town(Stand):
    """A stand with teams, and a command line for each user."""

    def __init__(self, plane: ControlPlane, namespace: str, *options: str) -> None:
        """`options`: of the controller."""
        super().__init__(plane, namespace)
        self.queue, self.other = f"{namespace}-vision", f"{namespace}-speech"
        self._install()
        self.nodes(1, gpus=8)
        self.start(*options)

    def _install(self) -> None:
        self.apply(yaml.safe_dump_all(definitions()))
        words = ("wait", "--for=condition=Established", "crd/queues.optimus.dev", "crd/nodepools.optimus.dev")
        subprocess.run(self.plane.kubectl(*words, "--timeout=60s"), check=True, capture_output=True)
        until(self._has_queues, "the server knows queues")

    def _has_queues(self) -> bool:
        limits = {self.queue: 6, self.other: "unlimited"}
        queues = [
            {
                "apiVersion": "optimus.dev/v1alpha1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": {"gpu": {"guarantee": 4, "limit": limit}, "namespaces": [self.namespace]},
            }
            for name, limit in limits.items()
        ]
        # Once the server knows queues, those who name none need this one: other stories of the same server do.
        queues.append(
            {"apiVersion": "optimus.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {}}
        )
        done = subprocess.run(
            self.plane.kubectl("apply", "-f", "-"),
            input=yaml.safe_dump_all(queues),
            text=True,
            check=False,
            capture_output=True,
        )
        return done.returncode == 0

    def job(
        self, name: str, pods: int, *, queue: str = "", gpus: int = 1, suspend: bool = False, lasts: str = ""
    ) -> None:
        """`lasts`: so long it is said to run."""
        least = 'optimus.dev/min-members: "{pods}"'
        text = JOB.replace(least, f'{least}, optimus.dev/expected-duration: "{lasts}"') if lasts else JOB
        self.apply(
            text.format(
                name=name,
                namespace=self.namespace,
                queue=queue or self.queue,
                pods=pods,
                gpus=gpus,
                suspend=str(suspend).lower(),
                scheduler=self.scheduler,
            )
        )

    def target(self, user: str = "admin") -> OnCluster:
        """As a program would ask."""
        config = self.plane.kubeconfig() if user == "admin" else self.plane.kubeconfig(user)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPTIMUS_CONTROLLER_SCHEDULER_NAME", self.scheduler)
            patch.setenv("OPTIMUS_NAMESPACE", self.namespace)
            return OnCluster(load(str(config)))

    def environment(self) -> dict[str, str]:
        """By which a command finds this town."""
        return {
            "OPTIMUS_TARGET": "kube:",
            "OPTIMUS_NAMESPACE": self.namespace,
            "OPTIMUS_CONTROLLER_SCHEDULER_NAME": self.scheduler,
        }

    def cli(self, *words: str, user: str = "admin", stdin: str = "", policy: str = "") -> Said:
        """In this process: what a command says, and its exit code. `policy`: what the user says of the controller's."""
        environment = {
            **self.environment(),
            "KUBECONFIG": str(self.plane.kubeconfig() if user == "admin" else self.plane.kubeconfig(user)),
            **({"OPTIMUS_CONTROLLER_POLICY": policy} if policy else {}),
        }
        done = CliRunner(env=environment).invoke(app, list(words), input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    def view(self, name: str, user: str = "admin") -> dict[str, Any]:
        said = self.cli("get", "jobs", name, "-o", "json", user=user)
        return said.rows()[0] if said.code == 0 else {"phase": said.err, "reason": None}

    def reaches(self, name: str, phase: str) -> dict[str, Any]:
        until(lambda: self.view(name)["phase"] == phase, f"{name} is {phase}: {self.view(name)}")
        return self.view(name)

    def clear(self) -> None:
        words: tuple[str, ...]
        for kind in ("unifiedjobs", "jobs", "deployments", "pods"):
            words = ("delete", kind, "--all", "-n", self.namespace, "--wait=false")
            if kind == "pods":
                words = (*words, "--grace-period=0", "--force")  # some are on nodes where nobody would end them
            subprocess.run(self.plane.kubectl(*words), check=True, capture_output=True)
        until(lambda: not self.pods(), "nothing is left")

    def label(self, words: str) -> None:
        """The namespace."""
        subprocess.run(self.plane.kubectl("label", "namespace", self.namespace, words), check=True, capture_output=True)

    def told(self, name: str) -> dict[str, str]:
        """What the controller has written: the condition of a pod of this job, or the event about it."""
        for pod in self.pods():
            if pod["metadata"]["labels"].get("job-name") == name and (said := self.condition(pod["metadata"]["name"])):
                code, _, text = said.partition(": ")
                return {"code": code, "text": text}
        found = [(code, note) for about, code, note in self.events() if about == name and code not in OF_KUBERNETES]
        return {"code": found[-1][0], "text": found[-1][1]} if found else {}

    def stop(self) -> None:
        super().stop()
        for queue in (self.queue, self.other):
            subprocess.run(
                self.plane.kubectl("delete", "queue", queue, "--ignore-not-found"), check=False, capture_output=True
            )


OF_KUBERNETES = ("SuccessfulCreate", "SuccessfulDelete", "Suspended", "Resumed", "Completed", "Scheduled")


_TOWNS = itertools.count(1)


@pytest.fixture(scope="module")
def whole_town(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Town]:
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")
    # A worker may come back to a module that it has left, while the namespace of then is still going.
    made = Town(plane, f"{name[:30].strip('-')}-{next(_TOWNS)}", *getattr(request.module, "CONTROLLER", ()))
    yield made
    made.stop()


@pytest.fixture
def town(whole_town: Town, monkeypatch: pytest.MonkeyPatch) -> Iterator[Town]:
    monkeypatch.setattr(os, "nice", lambda _by: 0)  # whoever explains stands back; the tests do not
    yield whole_town
    whole_town.clear()


@pytest.fixture
def grant(whole_town: Town) -> Callable[..., None]:
    """A role in the namespace for a user: `grant("alice", "get,list", "pods")`."""

    def give(user: str, verbs: str, resources: str) -> None:
        name = f"{user}-{abs(hash((verbs, resources))) % 10_000}"
        space = ("-n", whole_town.namespace)
        for words in (
            ("create", "role", name, f"--verb={verbs}", f"--resource={resources}", *space),
            ("create", "rolebinding", name, f"--role={name}", f"--user={user}", *space),
        ):
            subprocess.run(whole_town.plane.kubectl(*words), check=True, capture_output=True)

    return give


@pytest.fixture
def everywhere(whole_town: Town) -> Iterator[Callable[[str, str], None]]:
    """The right to see something in the whole cluster, for as long as a story lasts: `everywhere("alice", "nodes")`."""
    given: list[str] = []

    def give(user: str, resources: str) -> None:
        name = f"{whole_town.namespace}-{user}-sees"
        given.append(name)
        for words in (
            ("create", "clusterrole", name, "--verb=get,list,watch", f"--resource={resources}"),
            ("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={user}"),
        ):
            subprocess.run(whole_town.plane.kubectl(*words), check=True, capture_output=True)

    yield give
    for name in given:
        for kind in ("clusterrole", "clusterrolebinding"):
            subprocess.run(whole_town.plane.kubectl("delete", kind, name), check=True, capture_output=True)
