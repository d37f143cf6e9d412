"""What real nodes need of the machine: root, four packages of Debian, and that a container really runs.

The last is not guessed from versions and mounts: a container is run once, with a bridge, an overlay and a cgroup, in
namespaces that go with it.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from hack.controlplane.programs import cache_folder

PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "busybox": "busybox-static",
    "host-local": "containernetworking-plugins",
    "ip": "iproute2",
}
"""Program -> package of Debian and its children."""
CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
PLACES = os.pathsep.join(("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", *CNI_FOLDERS))
INSTALL_S = 300
TRIAL_S = 60
TRIAL = """
set -e
ip link add trial type bridge
ip link add one type veth peer name two
mount -t tmpfs tmpfs "$1"
mkdir -p "$1/lower" "$1/upper" "$1/work" "$1/bundle/rootfs"
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/bundle/rootfs"
mkdir -p "$1/bundle/rootfs/bin" "$1/bundle/rootfs/proc" "$1/bundle/rootfs/dev" "$1/bundle/rootfs/sys"
cp "$2" "$1/bundle/rootfs/bin/busybox"
printf '%s' "$4" > "$1/bundle/config.json"
"$3" --root "$1/state" run --bundle "$1/bundle" "$5"
"""


class RealNodesError(Exception):
    """Why there can be no real nodes here, and what to do."""


def where(name: str) -> str:
    """The path of a program. Folders of administrators too: they are not always on the path."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + PLACES)
    if found is None:
        raise RealNodesError(f"{name} is not here: apt-get install {PACKAGES.get(name, name)}")
    return found


def missing() -> list[str]:
    """Packages that have to be installed."""
    path = os.environ.get("PATH", "") + os.pathsep + PLACES
    return sorted({package for name, package in PACKAGES.items() if shutil.which(name, path=path) is None})


@functools.cache
def why_not(*, install: bool = True) -> str:
    """Why there can be no real nodes on this machine; empty if there can. What is missing is installed first, if it
    may be."""
    if sys.platform != "linux":
        return "real nodes need Linux"
    if os.geteuid() != 0:
        return "real nodes need root: namespaces, cgroups and a bridge are made"
    try:
        if install:
            ensure()
        elif packages := missing():
            return f"real nodes need packages: apt-get install {' '.join(packages)}"
        try_a_container()
    except RealNodesError as error:
        return str(error)
    return ""


def ensure() -> None:
    """Installs what is missing. Two who come at the same time wait for each other."""
    if not missing():
        return
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if packages := missing():
            install(packages, "real nodes need")


def install(packages: list[str], who_needs: str) -> None:
    """As root, from Debian."""
    by_hand = f"install by hand what {who_needs}: {' '.join(packages)}"
    apt = shutil.which("apt-get")
    if apt is None:
        raise RealNodesError(f"there is no apt-get here; {by_hand}")
    print(f"installing {' '.join(packages)}", file=sys.stderr, flush=True)
    install = [apt, "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = _run(install, environment, by_hand)
    if done.returncode:  # a fresh machine knows no packages yet
        _run([apt, "update", "--quiet"], environment, by_hand)
        done = _run(install, environment, by_hand)
    if done.returncode:
        raise RealNodesError(f"apt-get could not install {' '.join(packages)}: {_last_line(done.stderr)}; {by_hand}")


def _run(words: list[str], environment: dict[str, str], by_hand: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_S,
        )
    except subprocess.TimeoutExpired:
        raise RealNodesError(f"{' '.join(words[:2])} did not end within {INSTALL_S} s; {by_hand}") from None


def try_a_container() -> None:
    """One container, as containerd would run it, in namespaces of its own."""
    name = f"optimus-trial-{uuid.uuid4().hex[:12]}"
    config = {
        "ociVersion": "1.0.2",
        "process": {"args": ["/bin/busybox", "true"], "cwd": "/", "env": [], "user": {"uid": 0, "gid": 0}},
        "root": {"path": "rootfs"},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {
            "cgroupsPath": f"/{name}",
            "resources": {"memory": {"limit": 1 << 26}},
            "namespaces": [{"type": kind} for kind in ("pid", "mount", "network", "ipc", "uts")],
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        alone = [where("unshare"), "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
        words = [*alone, TRIAL, "sh", folder, where("busybox"), where("runc"), json.dumps(config), name]
        path = os.environ.get("PATH", "") + os.pathsep + PLACES
        try:
            done = subprocess.run(
                words,
                env={**os.environ, "PATH": path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=TRIAL_S,
            )
        except subprocess.TimeoutExpired:
            raise RealNodesError(f"containers do not run here: one did not end within {TRIAL_S} s") from None
        finally:
            _forget(name)
    if done.returncode:
        raise RealNodesError(f"containers do not run here: {_last_line(done.stderr)}")


def _forget(name: str) -> None:
    for left in (*Path("/sys/fs/cgroup").glob(f"*/{name}"), Path("/sys/fs/cgroup") / name):
        if left.is_dir():
            left.rmdir()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no word about why"])[-1]
