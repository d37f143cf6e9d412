"""A node on which work cannot start, on a real server: it goes elsewhere, and where there is no elsewhere it goes on
trying. The story does what a provisioner does: for some nodes it makes volumes, for others it cannot."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.kube.body.clusters import Stand, until
from tests.kube.body.test_volumes_that_wait import (
    SELECTED,
    claim,
    nodes_of,
    pod,
    selected,
    storage_class,
    the_claim,
)

PROVISIONER = "disks.example"
Json = dict[str, Any]


@contextmanager
def provisioner(stand: Stand, *claims: str, refuses: Callable[[str, int], bool]) -> Iterator[Counter[str]]:
    """`refuses(node, times)`: whether it cannot make a volume there, asked so many times before. It counts how often it
    was asked for a volume on each node, by all claims together."""
    asked: Counter[str] = Counter()
    over = threading.Event()

    def work() -> None:
        open_claims = set(claims)
        while open_claims and not over.wait(0.1):
            for name in sorted(open_claims):
                if not (node := selected(stand, name)):
                    continue
                asked[node] += 1
                if refuses(node, asked[node] - 1):
                    where = (f"--namespace={stand.namespace}", f"{SELECTED}-")
                    take_off = stand.plane.kubectl("annotate", "pvc", name, *where)
                    subprocess.run(take_off, check=True, capture_output=True)
                else:
                    _make(stand, name, node)
                    open_claims.discard(name)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield asked
    finally:
        over.set()
        thread.join()


def _make(stand: Stand, name: str, node: str) -> None:
    made = the_claim(stand, name)
    meta = made["metadata"]
    ref = {"kind": "PersistentVolumeClaim", "namespace": stand.namespace, "name": name, "uid": meta["uid"]}
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec: Json = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": made["spec"]["storageClassName"],
        "csi": {"driver": PROVISIONER, "volumeHandle": f"{stand.namespace}-{name}"},
        "claimRef": {"apiVersion": "v1", **ref},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    called = {"name": f"pvc-{meta['uid']}", "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}}
    stand.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": called, "spec": spec}))


def test_a_gang_leaves_the_node_on_which_its_volumes_cannot_be_made(stand: Stand) -> None:
    first, second = stand.nodes(2)
    disks = storage_class(stand, "disks", provisioner=PROVISIONER)
    names = ["data-0", "data-1"]
    for name in names:
        claim(stand, name, disks)
    with provisioner(stand, *names, refuses=lambda node, _times: node == first) as asked:
        stand.start()
        for number, name in enumerate(names):
            pod(stand, f"train-{number}", group="train", of=2, uses=name)
        until(lambda: nodes_of(stand, "train") == [second, second], "the gang runs where its volumes can be made")
        assert 1 <= asked[first] <= 2 * len(names), "nobody asks the first one again and again"


def test_where_there_is_only_one_node_it_is_tried_until_it_goes_well(stand: Stand) -> None:
    [only] = stand.nodes(1)
    claim(stand, "data", storage_class(stand, "disks", provisioner=PROVISIONER))
    with provisioner(stand, "data", refuses=lambda _node, times: times < 3) as asked:
        stand.start()
        pod(stand, "reader", uses="data")
        until(lambda: "could not be made" in stand.condition("reader"), "people are told what it waits for")
        until(lambda: nodes_of(stand) == [only], "it runs in the end")
        assert asked[only] == 4
