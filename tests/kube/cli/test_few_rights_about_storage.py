"""Who may not read what storage drivers say gets answers all the same, and is told that they may be less exact."""

from __future__ import annotations

import subprocess

import yaml

from tests.kube.body.clusters import until
from tests.kube.cli.conftest import Town

SEEN = (
    "nodes,pods,namespaces,queues.optimus.dev,nodepools.optimus.dev,"
    "persistentvolumeclaims,storageclasses.storage.k8s.io,csidrivers.storage.k8s.io"
)
DRIVER, KIND = "nowhere.example", "nowhere"
THINGS = f"""
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {{name: {DRIVER}}}
spec: {{storageCapacity: true}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {KIND}}}
provisioner: {DRIVER}
volumeBindingMode: WaitForFirstConsumer
---
"""


def test_who_may_not_read_capacities_is_not_told_that_there_are_none(town: Town) -> None:
    role = f"--clusterrole={town.namespace}-bob"
    for words in (
        (
            "create",
            "clusterrole",
            role.partition("=")[2],
            "--verb=get,list",
            f"--resource={SEEN}",
        ),
        ("create", "clusterrolebinding", f"{town.namespace}-bob", role, "--user=bob"),
    ):
        subprocess.run(town.plane.kubectl(*words), check=True, capture_output=True)
    meta = {"name": "data", "namespace": town.namespace}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, "storageClassName": KIND}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    uses = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod_spec = {"schedulerName": town.scheduler, "volumes": uses, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": "reader"}, "spec": pod_spec}
    town.apply(THINGS + yaml.safe_dump_all([claim, pod]))
    try:
        until(lambda: "on no node" in town.condition("reader"), "the controller has looked")
        assert "on no node" in town.cli("get", "jobs", "-o", "json").out
        said = town.cli("get", "jobs", "-o", "json", user="bob")
        assert said.code == 0 and "reader" in said.out and "on no node" not in said.out
        assert "csistoragecapacities.storage.k8s.io" in said.err and "less exact" in said.err
    finally:
        mine = f"{town.namespace}-bob"
        for thing in (
            ("csidriver", DRIVER),
            ("storageclass", KIND),
            ("clusterrolebinding", mine),
            ("clusterrole", mine),
        ):
            subprocess.run(town.plane.kubectl("delete", *thing), check=True, capture_output=True)
