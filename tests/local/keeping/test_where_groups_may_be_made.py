"""Which limits a machine can keep: trees of cgroups as different machines show them, drawn into a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from optimus.drivers.local.keeping.delegation import Made, make_group
from optimus.drivers.local.keeping.events import Limits
from optimus.drivers.local.keeping.limiting import Limiting, limiting_here

BOTH = "cpuset cpu io memory pids\n"


class Machine:
    """What /proc says of mounts and of this process, and the folders that it speaks of."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.tree = folder / "proc", folder / "tree"
        for made in (self.proc, self.tree):
            made.mkdir()
        self.mounts: list[str] = ["22 1 0:20 / /proc rw - proc proc rw"]

    def mounted(self, kind: str, where: str = "", options: str = "rw", root: str = "/") -> None:
        (self.tree / where).mkdir(exist_ok=True)
        self.mounts.append(f"30 24 0:26 {root} {self.tree / where} rw,nosuid shared:4 - {kind} {kind} {options}")

    def group(self, path: str, controllers: str = BOTH, passed_on: str = "", processes: str = "") -> Path:
        group = self.tree / path
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.controllers").write_text(controllers)
        (group / "cgroup.subtree_control").write_text(passed_on)
        (group / "cgroup.procs").write_text(processes)
        return group

    def made(self, own: str) -> Made:
        (self.proc / "mountinfo").write_text("\n".join(self.mounts) + "\n")
        (self.proc / "cgroup").write_text(own)
        return make_group("optimus-x", self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def told(made: Made) -> str:
    return Limiting(made.version, made.groups, made.why_not).told()


def test_version_2_below_the_own_group(machine: Machine) -> None:
    machine.mounted("cgroup2")
    machine.group("")
    own = machine.group("user.slice/optimus.service")
    found = machine.made("0::/user.slice/optimus.service\n")
    assert found.groups == {"cpu": own / "optimus-x", "memory": own / "optimus-x"}
    assert (own / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert told(found) == "CPU and memory by cgroups v2"


def test_version_2_where_the_group_above_has_the_controllers(machine: Machine) -> None:
    """systemd passes to a terminal's scope only what somebody asked for."""
    machine.mounted("cgroup2")
    machine.group("")
    above = machine.group("app.slice", passed_on="memory cpu")
    machine.group("app.slice/terminal.scope", controllers="pids\n")
    assert machine.made("0::/app.slice/terminal.scope\n").groups["memory"] == above / "optimus-x"


def test_version_2_with_one_controller(machine: Machine) -> None:
    machine.mounted("cgroup2")
    top = machine.group("", controllers="memory pids")
    found = machine.made("0::/\n")
    assert told(found) == f"memory by cgroups v2, not CPU ({top} has no controller cpu)"


def test_version_1_has_a_group_for_each_controller(machine: Machine) -> None:
    """Beside a version 2 without controllers; the two are in different places of their trees."""
    machine.mounted("cgroup2", "unified")
    machine.group("unified", controllers="hugetlb\n")
    machine.mounted("cgroup", "cpu,cpuacct", "rw,cpu,cpuacct")
    machine.mounted("cgroup", "memory", "rw,memory")
    (machine.tree / "memory" / "jobs" / "mine").mkdir(parents=True)
    found = machine.made("5:memory:/jobs/mine\n4:cpu,cpuacct:/\n0::/\n")
    assert found.groups == {
        "cpu": machine.tree / "cpu,cpuacct" / "optimus-x",
        "memory": machine.tree / "memory" / "jobs" / "mine" / "optimus-x",
    }
    assert told(found) == "CPU and memory by cgroups v1"


def test_a_container_that_sees_only_its_own_part_of_the_tree(machine: Machine) -> None:
    machine.mounted("cgroup", "memory", "rw,memory", root="/docker/abc")
    found = machine.made("5:memory:/docker/abc\n")
    assert found.groups == {"memory": machine.tree / "memory" / "optimus-x"}
    assert told(found) == "memory by cgroups v1, not CPU (this machine has no such cgroups)"


def test_a_machine_without_cgroups(machine: Machine) -> None:
    assert told(machine.made("")) == (
        "none (this machine has no such cgroups); processes are not held to their CPU and memory"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not")
def test_a_tree_that_belongs_to_somebody_else(machine: Machine) -> None:
    for version, mount in ((2, "cgroup2"), (1, "cgroup")):
        machine.mounts.clear()
        machine.mounted(mount, f"v{version}", "rw,cpu,memory")
        group = machine.group(f"v{version}")
        (machine.proc / "mountinfo").write_text("\n".join(machine.mounts) + "\n")
        (machine.proc / "cgroup").write_text("0::/\n1:cpu,memory:/\n")
        said = as_nobody(machine.proc)
        assert f"{group}: is not writable" in said, said
        assert said.startswith("none (")


def as_nobody(proc: Path) -> str:
    reads, writes = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            for folder in (proc, *list(proc.parents)[:-2]):
                folder.chmod(0o755)
            os.setuid(65534)
            os.write(writes, told(make_group("optimus-x", proc)).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as said:
        os.waitpid(pid, 0)
        return said.read()


@pytest.mark.parametrize(
    ("limits", "one", "two"),
    [
        (None, [], []),
        (Limits(), [], []),
        (Limits(cpu_milli=1000), ["c/a/cpu.shares=1024"], ["c/a/cpu.weight=100"]),
        (Limits(cpu_milli=1), ["c/a/cpu.shares=2"], ["c/a/cpu.weight=1"]),
        (Limits(cpu_milli=999_000_000), ["c/a/cpu.shares=262144"], ["c/a/cpu.weight=10000"]),
        (
            Limits(cpu_limit_milli=250),
            ["c/a/cpu.cfs_period_us=100000", "c/a/cpu.cfs_quota_us=25000"],
            ["c/a/cpu.max=25000 100000"],
        ),
        (
            Limits(cpu_limit_milli=1),
            ["c/a/cpu.cfs_period_us=100000", "c/a/cpu.cfs_quota_us=1000"],
            ["c/a/cpu.max=1000 100000"],
        ),
        (
            Limits(memory_bytes=1 << 20),
            ["m/a/memory.limit_in_bytes=1048576", "?m/a/memory.memsw.limit_in_bytes=1048576"],
            ["m/a/memory.max=1048576", "?m/a/memory.swap.max=0", "?m/a/memory.oom.group=1"],
        ),
    ],
)
def test_what_limits_are_called(limits: Limits | None, one: list[str], two: list[str]) -> None:
    roots = {"cpu": Path("c"), "memory": Path("m")}
    for version, expected in ((1, one), (2, two)):
        _, settings = Limiting(version, roots).asked_for("a", limits)
        assert [setting.decode() for setting in settings] == expected


def test_limits_that_nobody_can_keep_make_no_groups() -> None:
    limits = Limits(cpu_milli=1000, memory_bytes=1)
    assert Limiting(1, {}).asked_for("a", limits) == ([], [])
    assert Limiting(1, {"cpu": Path("c")}).asked_for("a", limits) == ([b"c/a"], [b"c/a/cpu.shares=1024"])


ALONE = """
import os, pathlib, sys
from optimus.drivers.local.keeping import delegation
own, delegation.CPU = pathlib.Path(sys.argv[1]), sys.argv[2]
delegation.MEMORY = delegation.CPU
(own / "cgroup.procs").write_text("0")
print(delegation.make_group("optimus-x").groups)
print((own / "optimus-scheduler" / "cgroup.procs").read_text().split() == [str(os.getpid())])
"""


def test_a_scheduler_alone_in_its_group_moves_down(real_version_2: tuple[Path, str]) -> None:
    """In the kernel's own tree, with any controller that there is in it."""
    own, controller = real_version_2
    words = [sys.executable, "-c", ALONE, str(own), controller]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert f"{own}/optimus-x" in said
    assert said.endswith("True\n")
    assert (own / "cgroup.subtree_control").read_text().split() == [controller]


@pytest.fixture
def real_version_2() -> Iterator[tuple[Path, str]]:
    """A group of its own with a controller. Where nobody uses the tree, one is passed on as long as it takes."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    top = next((Path(line.split()[4]) for line in lines if " - cgroup2 " in line), None)
    if top is None or not os.access(top / "cgroup.subtree_control", os.W_OK):
        pytest.skip("no tree of version 2 that could be changed")
    passed_on = (top / "cgroup.subtree_control").read_text().split()
    known = passed_on or (top / "cgroup.controllers").read_text().split()
    if not known or (not passed_on and any(entry.is_dir() for entry in top.iterdir())):
        pytest.skip("the tree of version 2 has no controllers, or they are not ours to pass on")
    own = top / f"optimus-test-{os.getpid()}"
    if not passed_on:
        (top / "cgroup.subtree_control").write_text(f"+{known[0]}")
    try:
        own.mkdir()
        yield own, known[0]
    finally:
        for left in (own / "optimus-x", own / "optimus-scheduler", own):
            if left.exists():
                left.rmdir()
        if not passed_on:
            (top / "cgroup.subtree_control").write_text(f"-{known[0]}")


def test_the_place_is_written_down_for_the_next_scheduler(machine: Machine, tmp_path: Path) -> None:
    machine.mounted("cgroup2")
    machine.group("", passed_on="cpu memory")
    machine.made("0::/\n")
    here = limiting_here(tmp_path, machine.proc)
    assert (tmp_path / "cgroups").read_text() == f"{here.groups['cpu']}\n"
    assert (here.groups["cpu"] / "cpu.weight").read_text() == str(min((os.cpu_count() or 1) * 100, 10_000))
