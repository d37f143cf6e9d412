"""Limiting: which limits are kept on this machine, and what they are called there.

Why: the two versions of cgroups differ in every file name and number; nobody else has to know.
Owns: one group for all replicas of a store, with a group in it for each that asks for something; which limits are in
force and why not; the removal of groups whose replicas are gone.
Must not: fail: a machine without cgroups that may be changed runs everything, without limits.

    version 2   <place>/optimus-<store>/<attempt>
    version 1   <place of memory>/optimus-<store>/<attempt>, <place of cpu>/optimus-<store>/<attempt>

A request for CPU is a weight: who asks for twice as much gets twice as much where others want it, and all that is idle.
One core weighs as much as a process that asks for nothing, all replicas together as much as the machine has cores.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from optimus.drivers.local.keeping.cgroups import OPTIONAL
from optimus.drivers.local.keeping.delegation import CPU, MEMORY, make_group
from optimus.drivers.local.keeping.events import Limits

_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1_000  # the kernel takes no less
_NAMES = {CPU: "CPU", MEMORY: "memory"}
Line = tuple[str, int | str]
"""File and value. A file that not every kernel has begins with a question mark."""


@dataclass(frozen=True, slots=True)
class Limiting:
    version: int
    groups: dict[str, Path]
    """By controller: the group of all replicas, the same for both on version 2. Others are not held to theirs."""
    why_not: str = ""
    """Why a controller is missing."""
    former: tuple[Path, ...] = ()
    """Groups of earlier schedulers of this store, who began elsewhere in the tree."""

    def told(self) -> str:
        """`CPU and memory by cgroups v2`."""
        kept = " and ".join(name for controller, name in _NAMES.items() if controller in self.groups)
        missing = " and ".join(name for controller, name in _NAMES.items() if controller not in self.groups)
        if not kept:
            return f"none ({self.why_not}); processes are not held to their CPU and memory"
        return f"{kept} by cgroups v{self.version}" + (f", not {missing} ({self.why_not})" if missing else "")

    def asked_for(self, attempt: str, limits: Limits | None) -> tuple[list[bytes], list[bytes]]:
        """Groups to be made for it and what is to be written, `path=value`: none for one that asks for nothing."""
        lines = {} if limits is None else {CPU: _cpu(self.version, limits), MEMORY: _memory(self.version, limits)}
        told = {one: self.groups[one] / attempt for one, some in lines.items() if some and one in self.groups}
        settings = [_setting(group, *line) for one, group in told.items() for line in lines[one]]
        return list(dict.fromkeys(map(os.fsencode, told.values()))), settings

    def clear(self, living: set[str]) -> None:
        """Remove the groups of those that are gone. One with a process in it cannot be removed."""
        for group in self._all():
            with contextlib.suppress(OSError):
                for entry in list(os.scandir(group)):
                    if entry.is_dir() and entry.name not in living:
                        _remove(Path(entry.path))
        for group in self.former:
            _remove(group)

    def forget(self, attempt: str) -> None:
        """It never ran."""
        for group in self._all():
            _remove(group / attempt)

    def close(self) -> None:
        """Everything, where nobody is left in it."""
        self.clear(set())
        for group in self._all():
            _remove(group)

    def _all(self) -> list[Path]:
        return list(dict.fromkeys((*self.groups.values(), *self.former)))


def limiting_here(store: Path, proc: Path = Path("/proc/self")) -> Limiting:
    """What this machine lets us keep; the file `cgroups` in the store tells the next scheduler where."""
    name = f"optimus-{hashlib.blake2s(os.fsencode(store.absolute()), digest_size=4).hexdigest()}"
    made = make_group(name, proc)
    if CPU in made.groups:
        file, value = _weight(made.version, 1000 * (os.cpu_count() or 1))
        with contextlib.suppress(OSError):
            (made.groups[CPU] / file).write_text(str(value))
    former = _remembered(store / "cgroups", name, list(made.groups.values()))
    return Limiting(made.version, made.groups, made.why_not, former)


def _remembered(file: Path, name: str, groups: list[Path]) -> tuple[Path, ...]:
    """Those that earlier schedulers made elsewhere and that are still there."""
    with contextlib.suppress(OSError):
        before = map(Path, file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()
        former = tuple(path for path in before if path.name == name and path not in groups and path.is_dir())
        file.write_text("".join(f"{path}\n" for path in dict.fromkeys((*groups, *former))), encoding="utf-8")
        return former
    return ()


def _cpu(version: int, limits: Limits) -> list[Line]:
    lines: list[Line] = []
    if limits.cpu_milli is not None:
        lines.append(_weight(version, limits.cpu_milli))
    if limits.cpu_limit_milli is not None:
        quota = max(limits.cpu_limit_milli * _PERIOD_US // 1000, _LEAST_QUOTA_US)
        if version == 2:
            lines.append(("cpu.max", f"{quota} {_PERIOD_US}"))
        else:
            lines += [("cpu.cfs_period_us", _PERIOD_US), ("cpu.cfs_quota_us", quota)]
    return lines


def _weight(version: int, milli: int) -> tuple[str, int]:
    """One core is what everybody has who says nothing: 100, or 1024."""
    if version == 2:
        return "cpu.weight", min(max(milli // 10, 1), 10_000)
    return "cpu.shares", min(max(milli * 1024 // 1000, 2), 262_144)


def _memory(version: int, limits: Limits) -> list[Line]:
    """Swap is no way around it, where there is some; on version 2 all processes of a replica end together."""
    limit = limits.memory_bytes
    if limit is None:
        return []
    if version == 2:
        return [("memory.max", limit), ("?memory.swap.max", 0), ("?memory.oom.group", 1)]
    return [("memory.limit_in_bytes", limit), ("?memory.memsw.limit_in_bytes", limit)]


def _setting(group: Path, file: str, value: int | str) -> bytes:
    mark = OPTIONAL if file.startswith("?") else b""
    return mark + os.fsencode(f"{group / file.removeprefix('?')}={value}")


def _remove(group: Path) -> None:
    with contextlib.suppress(OSError):
        group.rmdir()
