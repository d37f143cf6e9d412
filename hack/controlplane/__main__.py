"""A control plane for people: `make kube-up` and `make kube-down`.

python -m hack.controlplane up [--no-kwok] [--no-controllers]
python -m hack.controlplane down | status | build
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from hack.controlplane.plane import ControlPlane
from hack.controlplane.processes import ProcessError, started_at
from hack.controlplane.programs import VERSION, BuildError, build

FOLDER = Path(".work") / "kube"
RUNNING = FOLDER / "running.json"
STOP_S = 20.0


def up(*, controllers: bool, kwok: bool) -> int:
    if _running():
        print(f"it is up already: export KUBECONFIG={_kubeconfig()}")
        return 0
    shutil.rmtree(FOLDER, ignore_errors=True)
    plane = ControlPlane(FOLDER.absolute(), controllers=controllers, kwok=kwok, detached=True)
    plane.start()
    processes = [plane.etcd, plane.api_server, *plane.beside.values()]
    RUNNING.write_text(json.dumps({one.name: [one.pid, started_at(one.pid)] for one in processes}))
    plane.kubeconfig()
    print(f"Kubernetes {VERSION} at {plane.address}: {', '.join(one.name for one in processes)}")
    print(f"export KUBECONFIG={_kubeconfig()}")
    print(f"logs in {FOLDER}; `make kube-down` stops it and removes its data")
    return 0


def down() -> int:
    running = _running()
    for pid in running.values():
        os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + STOP_S
    while (left := _running()) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left.values():
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(FOLDER, ignore_errors=True)
    print("stopped" if running else "it was not up")
    return 0


def status() -> int:
    running = _running()
    for name, pid in running.items():
        print(f"{name}  process {pid}")
    print(f"export KUBECONFIG={_kubeconfig()}" if running else "it is not up: make kube-up")
    return 0 if running else 1


def _running() -> dict[str, int]:
    """Those that are really the ones that were started."""
    if not RUNNING.exists():
        return {}
    return {name: pid for name, (pid, since) in json.loads(RUNNING.read_text()).items() if started_at(pid) == since}


def _kubeconfig() -> Path:
    return (FOLDER / "admin.kubeconfig").absolute()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.controlplane", description=__doc__)
    parser.add_argument("what", choices=("up", "down", "status", "build"))
    parser.add_argument("--no-controllers", action="store_true", help="without the controllers of Kubernetes")
    parser.add_argument("--no-kwok", action="store_true", help="without nodes that only seem to be there")
    asked = parser.parse_args()
    try:
        if asked.what == "build":
            for name, path in build().items():
                print(f"{name}  {path.stat().st_size >> 20} MiB")
            return 0
        if asked.what == "up":
            return up(controllers=not asked.no_controllers, kwok=not asked.no_kwok)
        return down() if asked.what == "down" else status()
    except (BuildError, ProcessError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
