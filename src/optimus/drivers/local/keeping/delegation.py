"""Delegation: the place in the machine's tree of cgroups where this process may make a group with limits.

Why: root may almost everywhere, a user only where systemd or an administrator left a part of the tree to them.
Owns: the search, nearest place first, and the sentence that says why there is none.
Must not: move a process that is not this one, or leave its own group's limits: every place is at or above its own group
and, on version 2, the nearest that will do.

On version 2 a group that gives its children controllers must not have processes of its own. Where this process is alone
in its group (a unit or a scope of its own), it moves one level down; else the next group above is tried.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path

CPU, MEMORY = "cpu", "memory"
_OWN = "optimus-scheduler"
"""Where this process moves to if its group is to have children with controllers."""


@dataclass(frozen=True, slots=True)
class Mount:
    version: int
    root: str
    """What part of the tree is mounted: all of it is `/`."""
    where: Path
    controllers: frozenset[str]
    """Of version 1."""


@dataclass(frozen=True, slots=True)
class Made:
    version: int
    groups: dict[str, Path]
    """By controller: the group that was made."""
    why_not: str = ""
    """Why a controller is missing."""


def make_group(name: str, proc: Path = Path("/proc/self")) -> Made:
    """A group of this name in which limits can be kept; version 2 where it has the controllers."""
    mounts, own = _mounts(proc), _own_groups(proc)
    unified = next((mount for mount in mounts if mount.version == 2), None)
    if unified is not None and {CPU, MEMORY} & _words(unified.where / "cgroup.controllers"):
        return _make_v2(unified, own.get("", "/"), name)
    groups, problems = {}, []
    for controller in (CPU, MEMORY):
        mount = next((mount for mount in mounts if controller in mount.controllers), None)
        if mount is None:
            continue
        base = _inside(mount, own.get(controller, "/"))
        try:
            (base / name).mkdir(exist_ok=True)
        except OSError as error:
            problems.append(f"{base}: {_said(error)}")
        else:
            groups[controller] = base / name
    missing = "" if len(groups) == 2 else "; ".join(problems) or "this machine has no such cgroups"
    return Made(1, groups, missing)


def _make_v2(mount: Mount, own_path: str, name: str) -> Made:
    own = _inside(mount, own_path)
    above = [parent for parent in own.parents if parent.is_relative_to(mount.where)]
    why_not = ""
    for base in (own, *above):
        try:
            given = _make_below(base, name, alone=base == own and _words(own / "cgroup.procs") == {str(os.getpid())})
        except OSError as error:
            why_not = why_not or f"{base}: {_said(error)}"
        else:
            missing = " and ".join(sorted({CPU, MEMORY} - given))
            lacks = f"{base} has no controller {missing}" if missing else ""
            return Made(2, dict.fromkeys(given, base / name), lacks)
    return Made(2, {}, why_not)


def _make_below(base: Path, name: str, *, alone: bool) -> set[str]:
    """Which controllers the group got; OSError: it cannot be made here, or nobody could be moved into it."""
    given = {CPU, MEMORY} & _words(base / "cgroup.controllers")
    if not given:
        raise OSError(errno.ENODEV, "its controllers for CPU and memory are not passed on to it")
    with open(base / "cgroup.procs", "r+b"):  # to move a process, this file of the group above both must be ours
        pass
    group = base / name
    group.mkdir(exist_ok=True)
    try:
        _pass_on(base, given, alone=alone)
        _pass_on(group, given)
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise
    return given


def _pass_on(base: Path, controllers: set[str], *, alone: bool = False) -> None:
    """To its children."""
    if controllers <= _words(base / "cgroup.subtree_control"):
        return
    line = " ".join(f"+{one}" for one in sorted(controllers))
    try:
        (base / "cgroup.subtree_control").write_text(line)
    except OSError as error:
        if error.errno != errno.EBUSY or not alone:
            raise
        (base / _OWN).mkdir(exist_ok=True)
        (base / _OWN / "cgroup.procs").write_text("0")
        (base / "cgroup.subtree_control").write_text(line)


def _said(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "is not writable"
    if error.errno == errno.EBUSY:
        return "has processes of its own, so that its children get no limits"
    return error.strerror or str(error)


def _inside(mount: Mount, path: str) -> Path:
    """Where a group is to be seen; in a container that sees only a part of the tree, the top of that part."""
    below = path.removeprefix(mount.root) if path.startswith(mount.root) else ""
    found = mount.where / below.lstrip("/")
    return found if found.is_dir() else mount.where


def _mounts(proc: Path) -> list[Mount]:
    found = []
    for line in _text(proc / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        words, kinds = before.split(), after.split()
        if len(words) < 5 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if kinds[0] == "cgroup2" else 1
        controllers = frozenset(kinds[2].split(",")) if version == 1 else frozenset()
        found.append(Mount(version, _unescaped(words[3]), Path(_unescaped(words[4])), controllers))
    return found


def _own_groups(proc: Path) -> dict[str, str]:
    """By controller; version 2 has none in its line."""
    found = {}
    for line in _text(proc / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _unescaped(text: str) -> str:
    r"""`\040` is a space, in files where fields are separated by them."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


def _words(path: Path) -> set[str]:
    return set(_text(path).split())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
