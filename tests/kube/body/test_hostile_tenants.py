"""One tenant cannot take the scheduler down, nor hide what it has: on a real server, with a real controller."""

from __future__ import annotations

from tests.kube.body.clusters import Stand, until

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, annotations: {{{notes}}}}}
spec:
  schedulerName: {scheduler}
  {node}
  containers: [{{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}}}]
---
"""


def put(stand: Stand, name: str, notes: str, *, gpus: int = 1, node: str = "", scheduler: str = "") -> None:
    written = POD.format(
        name=name,
        namespace=stand.namespace,
        notes=notes,
        gpus=gpus,
        node=f"nodeName: {node}" if node else "",
        scheduler=scheduler or stand.scheduler,
    )
    stand.apply(written)


def test_numbers_that_nobody_can_count_with_stop_nobody(stand: Stand) -> None:
    (node,) = stand.nodes(1, gpus=6)
    long = "9" * 5_000
    put(stand, "loud", 'optimus.dev/priority: "9999999999999999999"')
    put(stand, "long", f'optimus.dev/priority: "-{long}", optimus.dev/term: "{long}"')
    put(stand, "seated", 'optimus.dev/slot: "pod-99999999999999999999"', node=node)
    put(stand, "seated-long", f'optimus.dev/slot: "pod-{long}"', node=node)
    controller = stand.start("--lease-seconds=3")
    stand.gang("honest", 2)
    until(lambda: len(stand.bound("honest")) == 2, "the others are scheduled")
    assert controller.poll() is None and "Traceback" not in stand.log()


def test_what_a_note_says_hides_no_gpu(stand: Stand) -> None:
    """Annotations can be changed while a pod runs, and a pod of any scheduler may carry ours."""
    node, other = stand.nodes(2, gpus=4)
    put(stand, "foreign", 'optimus.dev/gpu-fraction: "0.5"', gpus=3, node=node, scheduler="another")
    put(stand, "ours", 'optimus.dev/gpu-memory: "nonsense"', gpus=4, node=other)
    stand.start("--lease-seconds=3")
    for gang in ("one", "two"):
        stand.gang(gang, 1)
    until(lambda: len(stand.bound("one") + stand.bound("two")) == 1, "one GPU of eight is free")
    until(lambda: any(reason == "NoRoom" for _, reason, _ in stand.events()), "the other gang waits")
    assert stand.over_committed() == {}
