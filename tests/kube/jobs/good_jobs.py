"""UnifiedJobs that a server takes, one for each thing that can be said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.kube.jobs.wrong_jobs import job, one, pods

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "unifiedjob.md"


def from_the_reference() -> dict[str, Any]:
    """The first one on the page."""
    found = re.search(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    document: dict[str, Any] = yaml.safe_load(found[1])
    del document["metadata"]["namespace"]
    return document


GOOD: dict[str, dict[str, Any]] = {
    "reference": from_the_reference(),
    "least": job("least"),
    "everything": job(
        "everything",
        jobType="PyTorchElastic",
        queue="vision",
        priority=-5,
        preemptible="surplus",
        pools=["a100", "any"],
        replicaSpec={
            "minReplicas": 2,
            "maxReplicas": 16,
            "desiredReplicas": 8,
            "sizes": [2, 4, 8, 16],
            "gpu": {"count": 8, "models": ["A100", "H100"], "speeds": {"H100": 1.5}},
            "cpu": "500m",
            "memory": "64Gi",
            "accelerators": {"fpga": 1},
        },
        topology={"required": "topology.kubernetes.io/zone", "preferred": "nvlink"},
        checkpoint={"command": ["python", "save.py"], "graceSeconds": 60, "intervalSeconds": 600, "path": "/ckpt"},
        restart={"backoffLimit": 0, "backoffSeconds": 0, "maxBackoffSeconds": 5},
        restartCostSeconds=0,
        onLoss="restart",
        lossGraceSeconds=5,
        maxRuntimeSeconds=86_400,
        expectedDurationSeconds=3_600,
        deadline="2099-01-05T14:20:00Z",
        family="resnet",
        speedup=[1, 1.9, 2.7],
        suspend=True,
        ttlSecondsAfterFinished=0,
        **{"class": "unattended"},
        template={
            "metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}, "creationTimestamp": None},
            **one(
                args=["--lr", "0.1"],
                env=[
                    {"name": "A", "value": "b"},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                resources={"limits": {"example.com/x": 1, "ephemeral-storage": "1Gi"}},
                volumeMounts=[{"name": "v", "mountPath": "/ckpt"}],
            ),
        },
    ),
    "fraction": job("fraction", replicaSpec={"gpu": {"fraction": {"request": 0.25, "limit": 0.5}, "activity": 0.8}}),
    "memory": job("memory", replicaSpec={"gpu": {"memory": "20Gi"}}, preemptible="lent"),
    "session": job("session", jobType="Interactive", preemptible=False, replicaSpec={"gpu": {"count": 1}}),
    "service": job("service", jobType="Service", replicaSpec={"minReplicas": 2, "maxReplicas": 4}),
    "array": job("array", arraySize=100, replicaSpec={"gpu": {"count": 1}}),
    "powers": job("powers", replicaSpec={"sizes": ["powersOfTwo"], "maxReplicas": 4}),
    "named": job(
        "named",
        template=pods(
            schedulerName="optimus",
            restartPolicy="Never",
            nodeSelector={"a": "b"},
            tolerations=[{"operator": "Exists"}],
        ),
    ),
    "signalled": job("signalled", checkpoint={"signal": "USR1"}, replicaSpec={"desiredReplicas": 3}),
}
