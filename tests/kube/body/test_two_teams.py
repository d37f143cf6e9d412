"""Two teams with queues of their own: what is idle is lent, and taken back with the work of the borrower kept."""

from __future__ import annotations

import json

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
  template:
    metadata: {{annotations: {notes}}}
    spec:
      schedulerName: {scheduler}
      restartPolicy: Never
      containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "1"}}}}}}]
"""


def job(stand: Stand, name: str, queue: str, pods: int, notes: str = "{}") -> None:
    stand.apply(
        JOB.format(name=name, namespace=stand.namespace, queue=queue, pods=pods, scheduler=stand.scheduler, notes=notes)
    )


def suspended(stand: Stand, name: str) -> bool:
    found = json.loads(stand.plane.get(f"/apis/batch/v1/namespaces/{stand.namespace}/jobs/{name}"))
    return bool(found["spec"].get("suspend"))


def test_lent_and_taken_back(stand: Stand) -> None:
    stand.serve_queues()
    queues = {team: f"{stand.namespace}-{team}" for team in ("vision", "speech")}
    for queue in queues.values():
        assert stand.make_queue(queue, {"gpu": {"guarantee": 4}, "namespaces": [stand.namespace]})
    stand.nodes(2, gpus=4)
    stand.start()
    job(stand, "borrower", queues["speech"], 8)
    until(lambda: len(stand.bound("borrower")) == 8, "speech has all there is")
    job(stand, "owner", queues["vision"], 4, '{optimus.dev/seconds: "3"}')
    until(lambda: len(stand.bound("owner")) == 4, "vision has what it is due")
    assert suspended(stand, "borrower"), "it was stopped by its own field, and nothing of it failed"
    assert stand.over_committed() == {}
    told = [note for name, reason, note in stand.events() if name == "borrower" and reason == "Reclaimed"]
    assert told and "which is inside its guarantee" in told[0]
    until(lambda: len(stand.bound("borrower")) == 8, "when vision is done, it goes on")
    assert not suspended(stand, "borrower")
