"""Real nodes at a control plane, with GPUs that only the API server believes in.

with ControlPlane(folder, controllers=True, real_nodes=True) as plane, RealNodes(plane) as nodes:
    nodes[0].kubelet.kill(); nodes.wait_until_ready(nodes[0], ready=False); nodes[0].kubelet.start()
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from hack.controlplane.plane import ControlPlane
from hack.controlplane.processes import Process
from hack.controlplane.real_nodes import machine
from hack.controlplane.real_nodes.images import archive
from hack.controlplane.real_nodes.node import GPU, Node
from hack.controlplane.real_nodes.packages import RealNodesError, why_not

READY_S = 120.0
NUMBER = "number"


class RealNodes:
    def __init__(self, plane: ControlPlane, count: int = 2, gpus: int = 4, *, detached: bool = False) -> None:
        """`detached`: they outlive this process."""
        self.plane, self.gpus, self._detached = plane, gpus, detached
        self._count = count
        self.nodes: list[Node] = []
        self.place: machine.Place | None = None
        words = [sys.executable, "-m", "hack.controlplane.real_nodes.gpus", str(plane.kubeconfig()), str(gpus)]
        self.renewing = Process("gpus", words, plane.folder, detached=detached)

    def __getitem__(self, ordinal: int) -> Node:
        return self.nodes[ordinal]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Until all are ready and have their GPUs."""
        if why := why_not():
            raise RealNodesError(why)
        images = archive()
        self.place = place = machine.take()
        try:
            (self.plane.folder / NUMBER).write_text(str(place.number))
            place.make_bridge(self._count)
            config, authority = self.plane.kubeconfig(), self.plane.credentials.certificate
            for ordinal in range(self._count):
                name = f"node-{ordinal}"
                folder = self.plane.folder / name
                node = Node(name, place, ordinal, folder, config, authority, detached=self._detached)
                self.nodes.append(node)
                node.start(images)
            self.renewing.start()
            for node in self.nodes:
                self.wait_until_ready(node)
        except BaseException:
            self.stop()
            raise
        if self._detached:
            place.leave()  # the holders have it

    def stop(self) -> None:
        self.renewing.stop()
        for node in self.nodes:
            node.stop()
        if self.place is not None:
            self.place.clear()
            self.place.leave()
            self.place = None

    def wait_until_ready(self, node: Node, *, ready: bool = True) -> None:
        """As the API server sees it: takes pods and has its GPUs; or is known to be away."""
        of = node.kubelet if ready else self.plane.api_server
        of.wait_until(lambda: self.is_ready(node) == ready, READY_S)

    def allocatable(self, node: Node) -> dict[str, str]:
        found: dict[str, str] = self._told(node)["status"]["allocatable"]
        return found

    def is_ready(self, node: Node) -> bool:
        try:
            found = self._told(node)
        except OSError:
            return False
        status = found["status"]
        said = {one["type"]: one["status"] for one in status.get("conditions", ())}
        taints = [one["key"] for one in found["spec"].get("taints", ())]
        return said.get("Ready") == "True" and not taints and status["allocatable"].get(GPU) == str(self.gpus)

    def _told(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plane.get(f"/api/v1/nodes/{node.name}"))
        return found


def clear_after(folder: Path) -> None:
    """What nodes of a plane left on the machine; they have been killed. And what others left who no longer run."""
    if os.geteuid() != 0:
        return
    with contextlib.suppress(OSError, ValueError):  # none were started here
        machine.clear_after(int((folder / NUMBER).read_text()))
    machine.clear_what_nobody_holds()
