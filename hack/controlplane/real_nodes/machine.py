"""What real nodes share with the machine: a number, and with it an address range, a bridge and cgroups.

    number 3    addresses 198.18.3.0/24    bridge optimus-rig-3    cgroups /optimus-rig-3/…

A number is held by a socket with an abstract name, which the processes that hold the nodes inherit: it is free again
when the last of them is gone, and whoever takes it next first removes what was left. So a starter that is killed, or a
folder that was deleted by hand, costs the next one a moment and nobody a search.

198.18.0.0/15 is set aside for measuring between devices: no network that somebody uses is in it.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from hack.controlplane.real_nodes.packages import RealNodesError, where

NUMBERS = 16
CGROUPS = Path("/sys/fs/cgroup")
CLEAR_S = 20.0


class Place:
    """A number that is ours while the socket is open anywhere."""

    def __init__(self, number: int, held: socket.socket) -> None:
        self.number, self.held = number, held
        self.name = f"optimus-rig-{number}"
        self.bridge = self.name

    def address(self, last: int) -> str:
        return f"198.18.{self.number}.{last}"

    def make_bridge(self, addresses: int) -> None:
        """With an address for each node; the first is the gateway of the pods."""
        _ip("link", "add", self.bridge, "type", "bridge")
        for last in range(1, addresses + 1):
            _ip("address", "add", f"{self.address(last)}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")

    def make_cgroup(self, node: str) -> str:
        """Of one node, in every hierarchy there is; the path as kubelets write it."""
        try:
            if (CGROUPS / "cgroup.controllers").exists():
                _make_unified(CGROUPS / self.name / node)
            else:
                for hierarchy in _hierarchies():
                    _make_in(hierarchy, self.name, node)
        except OSError as error:
            raise RealNodesError(f"no cgroup can be made for {node}: {error}") from error
        return f"/{self.name}/{node}"

    def clear(self) -> None:
        """Bridge and cgroups. Everything in them has been killed; it may take a moment to be gone."""
        if Path("/sys/class/net", self.bridge).exists():
            _ip("link", "delete", self.bridge)
        trees = [hierarchy / self.name for hierarchy in (CGROUPS, *_hierarchies())]
        until = time.monotonic() + CLEAR_S
        while left := [tree for tree in trees if not _remove(tree)]:
            if time.monotonic() > until:
                raise RealNodesError(f"processes of earlier nodes do not end: see {left[0]}")
            time.sleep(0.05)

    def leave(self) -> None:
        self.held.close()


def take() -> Place:
    """The first number that is free, with nothing left of whoever had it before."""
    for number in range(NUMBERS):
        if place := _take(number):
            place.clear()
            return place
    raise RealNodesError(f"real nodes were started {NUMBERS} times on this machine: make kube-down where they are")


def clear_after(number: int) -> None:
    """What nodes with this number left, once they are gone; nothing if somebody else has the number by now."""
    until = time.monotonic() + CLEAR_S
    while not _clear(number) and time.monotonic() < until:
        time.sleep(0.05)


def clear_what_nobody_holds() -> None:
    """What others left that were killed."""
    for number in range(NUMBERS):
        _clear(number)


def _clear(number: int) -> bool:
    place = _take(number)
    if place is None:
        return False
    place.clear()
    place.leave()
    return True


def _take(number: int) -> Place | None:
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0optimus-rig-{number}")
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return Place(number, held)


def _ip(*words: str) -> None:
    done = subprocess.run([where("ip"), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RealNodesError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _hierarchies() -> list[Path]:
    """Of cgroups version 1: one for each controller."""
    if not CGROUPS.is_dir():
        return []
    return sorted(one for one in CGROUPS.iterdir() if (one / "cgroup.procs").exists() and not one.is_symlink())


def _make_in(hierarchy: Path, *names: str) -> None:
    """A new cpuset is empty and takes no process before it is filled."""
    above = hierarchy
    for name in names:
        here = above / name
        here.mkdir(exist_ok=True)
        for what in ("cpuset.cpus", "cpuset.mems"):
            if (here / what).exists():
                (here / what).write_text((above / what).read_text())
        above = here


def _make_unified(folder: Path) -> None:
    """Version 2: what is counted below has to be switched on above."""
    folder.mkdir(parents=True, exist_ok=True)
    for above in (CGROUPS, folder.parent, folder):
        there = (above / "cgroup.controllers").read_text().split()
        (above / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in there))


def _remove(tree: Path) -> bool:
    """Whether it is gone. A process that is still in it is one of ours."""
    if not tree.is_dir():
        return True
    try:
        for folder, _, _ in os.walk(tree, topdown=False):
            for pid in filter(None, map(int, Path(folder, "cgroup.procs").read_text().split())):
                os.kill(pid, signal.SIGKILL)
            Path(folder).rmdir()
    except OSError:
        return False
    return not tree.exists()
