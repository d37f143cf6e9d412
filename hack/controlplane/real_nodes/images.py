"""Container images for real nodes, written by hand: no registry, no Docker.

    rig.local/pause:1      holds the namespaces of a pod
    rig.local/busybox:1    a shell and its tools
    rig.local/python:1     the same, with the Python that runs this and `optimus.inside`: `import optimus` works

One archive in the form of `docker save`, which `ctr images import` reads. The Python is this interpreter at its own
path, with its standard library and the shared libraries that the loader names: what runs here runs there.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hack.controlplane.programs import cache_folder
from hack.controlplane.real_nodes.packages import where

PAUSE, BUSYBOX, PYTHON = "rig.local/pause:1", "rig.local/busybox:1", "rig.local/python:1"
SOURCE = Path(__file__).parents[3] / "src" / "optimus"
NEEDLESS = {"__pycache__", "site-packages", "test", "tests", "idlelib", "ensurepip", "lib2to3", "tkinter", "turtledemo"}
SEARCH = "PATH=/usr/local/bin:/usr/bin:/bin"
LIBRARY = re.compile(r"(/\S+) \(0x")
OLD_S = 24 * 3600
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
Fill = Callable[[tarfile.TarFile], None]


def archive() -> Path:
    """Written once for what is in it: the interpreter, busybox, `optimus.inside` and this file."""
    tells = [*_inside(), Path(__file__), Path(where("busybox")), Path(sys.executable).resolve()]
    seen = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in tells]
    path = cache_folder() / "images" / f"{hashlib.sha256(os.linesep.join(seen).encode()).hexdigest()[:16]}.tar"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("*.tar"):  # of other checkouts too, which may be reading theirs
            if time.time() - old.stat().st_mtime > OLD_S:
                old.unlink(missing_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        write(unfinished)
        unfinished.rename(path)
    path.touch()
    return path


def write(path: Path) -> None:
    tools, python = _layer(_busybox), _layer(_python)
    forever = ["/bin/busybox", "tail", "-f", "/dev/null"]
    with tarfile.open(path, "w") as saved:
        manifest = [
            _image(saved, PAUSE, [tools], {"Entrypoint": forever}),
            _image(saved, BUSYBOX, [tools], {"Cmd": ["/bin/sh"], "Env": [SEARCH]}),
            _image(saved, PYTHON, [tools, python], {"Cmd": ["/usr/bin/python"], "Env": [SEARCH, "PYTHONUNBUFFERED=1"]}),
        ]
        for layer in (tools, python):
            _add(saved, f"{_digest(layer)}/layer.tar", layer)
        _add(saved, "manifest.json", json.dumps(manifest).encode())


def _image(saved: tarfile.TarFile, tag: str, layers: list[bytes], config: dict[str, object]) -> dict[str, object]:
    machine = platform.machine()
    described = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}" for layer in layers]},
    }
    text = json.dumps(described).encode()
    name = f"{_digest(text)}.json"
    _add(saved, name, text)
    return {"Config": name, "RepoTags": [tag], "Layers": [f"{_digest(layer)}/layer.tar" for layer in layers]}


def _busybox(layer: tarfile.TarFile) -> None:
    for folder in ("bin", "tmp", "proc", "sys", "dev", "etc", "root"):
        _add_folder(layer, folder, 0o1777 if folder == "tmp" else 0o755)
    busybox = where("busybox")
    layer.add(busybox, "bin/busybox")
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in sorted({*listed} - {"busybox"}):
        _add_link(layer, f"bin/{name}", "busybox")
    _add(layer, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")


def _python(layer: tarfile.TarFile) -> None:
    interpreter = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))
    layer.add(interpreter, _inner(interpreter))
    layer.add(library, _inner(library), filter=_useful)
    modules = library.glob("lib-dynload/*.so")
    for shared in sorted(_shared([interpreter, *modules])):
        _add(layer, _inner(Path(shared)), Path(shared).read_bytes(), 0o755)
    _add_folder(layer, "usr/bin")
    for name in ("python", "python3"):
        _add_link(layer, f"usr/bin/{name}", str(interpreter))
    packages = Path(sysconfig.get_path("purelib", vars={"base": sys.base_prefix}))
    for source in _inside():
        _add(layer, _inner(packages / "optimus" / source.relative_to(SOURCE)), source.read_bytes())


def _inside() -> list[Path]:
    """All that a job needs of Optimus."""
    return [SOURCE / "__init__.py", *sorted((SOURCE / "inside").glob("*.py"))]


def _shared(programs: Iterable[Path]) -> set[str]:
    """The libraries that the loader would map for them, and the loader."""
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return set(LIBRARY.findall(told))


def _useful(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    needless = NEEDLESS.intersection(parts) or any(part.startswith("config-") for part in parts)
    return None if needless or member.name.endswith(".a") else member


def _layer(fill: Fill) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as layer:
        fill(layer)
    return held.getvalue()


def _add(into: tarfile.TarFile, name: str, text: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(text), mode
    into.addfile(member, io.BytesIO(text))


def _add_folder(into: tarfile.TarFile, name: str, mode: int = 0o755) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, mode
    into.addfile(member)


def _add_link(into: tarfile.TarFile, name: str, to: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    into.addfile(member)


def _inner(path: Path) -> str:
    return str(path).lstrip("/")


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
