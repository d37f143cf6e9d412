"""A control plane for people: `make kube-up` and `make kube-down`.

python -m hack.controlplane up [--profile fake|real] [--no-kwok] [--no-controllers]
python -m hack.controlplane down | status | build
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from hack.controlplane.plane import ControlPlane
from hack.controlplane.processes import ProcessError, noted
from hack.controlplane.programs import VERSION, BuildError, build
from hack.controlplane.real_nodes import RealNodes, RealNodesError, clear_after, why_not
from hack.controlplane.real_nodes.images import BUSYBOX, PYTHON

FOLDER = Path(".work") / "kube"
STOP_S = 20.0


def up(*, controllers: bool, kwok: bool, real: bool) -> int:
    if noted(FOLDER):
        print(f"it is up already: export KUBECONFIG={_kubeconfig()}; or make kube-down first")
        return 0
    if real and (why := why_not()):
        raise RealNodesError(why)
    down(quiet=True)  # what one who was killed may have left
    plane = ControlPlane(
        FOLDER.absolute(), controllers=controllers, kwok=kwok and not real, detached=True, real_nodes=real
    )
    try:
        plane.start()
        plane.kubeconfig()
        nodes = RealNodes(plane, detached=True) if real else None
        if nodes:
            nodes.start()
    except BaseException:
        plane.stop()
        raise
    print(f"Kubernetes {VERSION} at {plane.address}: {', '.join(noted(FOLDER))}")
    if nodes:
        print(f"{len(nodes.nodes)} real nodes with {nodes.gpus} GPUs each; images {BUSYBOX}, {PYTHON}")
    print(f"export KUBECONFIG={_kubeconfig()}")
    print(f"logs in {FOLDER}; `make kube-down` stops it and removes its data")
    return 0


def down(*, quiet: bool = False) -> int:
    """By force: what they would put in order is removed."""
    running = noted(FOLDER)
    until = time.monotonic() + STOP_S
    while (left := noted(FOLDER)) and time.monotonic() < until:
        for pid in left.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    clear_after(FOLDER)
    shutil.rmtree(FOLDER, ignore_errors=True)
    if not quiet:
        print("stopped" if running else "it was not up")
    return 0


def status() -> int:
    running = noted(FOLDER)
    for name, pid in running.items():
        print(f"{name}  process {pid}")
    print(f"export KUBECONFIG={_kubeconfig()}" if running else "it is not up: make kube-up")
    return 0 if running else 1


def _kubeconfig() -> Path:
    return (FOLDER / "admin.kubeconfig").absolute()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.controlplane", description=__doc__)
    parser.add_argument("what", choices=("up", "down", "status", "build"))
    parser.add_argument(
        "--profile", choices=("fake", "real"), default="fake", help="nodes: KWOK, or two with containers (root)"
    )
    parser.add_argument("--no-controllers", action="store_true", help="without the controllers of Kubernetes")
    parser.add_argument("--no-kwok", action="store_true", help="without nodes that only seem to be there")
    asked = parser.parse_args()
    try:
        if asked.what == "build":
            for name, path in build().items():
                print(f"{name}  {path.stat().st_size >> 20} MiB")
            why = why_not()
            print(f"no real nodes here: {why}" if why else "real nodes  packages are there, containers run")
            return 0
        if asked.what == "up":
            real = asked.profile == "real"
            return up(controllers=not asked.no_controllers, kwok=not asked.no_kwok, real=real)
        return down() if asked.what == "down" else status()
    except (BuildError, RealNodesError, ProcessError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
