"""How many short jobs one machine takes: /bin/true, many times, through a real `optimus up`.

Everything is in it: HTTP, the brain, the store (each turn written through to the disk), supervisors, logs and exits.
Told are starts a second, beside a bare loop that starts and waits in the same run; the memory of the scheduler at the
beginning, half-way and at the end; and what the whole store takes on the disk: its file, `runs/`, the journal.

A second machine keeps little (`--keep-parts`) and gets equal batches, one after the other: what the store has grown by
from each to the next, once it has cleared away what it may.

    python -m benchmarks.machine     # 10,000 parts of an array, 3,000 jobs in one file, 300 jobs submitted one by one
    python -m benchmarks.machine --parts 500        # a look; writes nothing
    python -m benchmarks.machine --parts 500 --journal 0        # the same without a journal: what recording costs
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measuring
from optimus.client import Connection, JobError

PARTS = 10_000
DOCUMENTS = 3_000
SINGLE = 300
TARGET = 300
BATCHES = 4
BATCH = 1_000
"""Parts of an array; as many are kept."""
LOOK_S = 0.25
BARE = 500


def bare_per_s(count: int) -> float:
    """Start and wait, one after the other, with nothing around it."""
    begun = time.perf_counter()
    for _ in range(count):
        os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], dict(os.environ)), 0)
    return count / (time.perf_counter() - begun)


class Machine:
    def __init__(self, folder: Path, *options: str, size: Sequence[str] = ("--nodes", "8", "--gpus", "8")) -> None:
        self.folder = folder
        environment = {**os.environ, "OPTIMUS_STORE": str(folder), "OPENBLAS_NUM_THREADS": "1"}
        words = [sys.executable, "-m", "optimus", "up", "--port", "0", *size, *options]
        self.process = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
        address = folder / "address"
        while not address.exists() or not address.read_text().strip():
            time.sleep(0.05)
        self.api = Connection(address.read_text().strip())
        while not self._answers():  # the process that speaks HTTP comes after the address
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return bool(self.api.get("/healthz")["ok"])
        except JobError:
            return False

    def submit(self, *names: str, array: int = 0) -> None:
        extra = f", arraySize: {array}" if array else ""
        job = "kind: UnifiedJob\nmetadata: {{name: {}}}\nspec: {{command: [/bin/true], gpu: 1{}}}\n"
        self.api.post("/v1/submit", "---\n".join(job.format(name, extra) for name in names).encode())

    def run_array(self, name: str, parts: int) -> None:
        self.submit(name, array=parts)
        while not self.api.get(f"/v1/jobs/default/{name}")["final"]:
            time.sleep(LOOK_S)

    def on_disk_mib(self) -> dict[str, float]:
        """Of the store, by what it is for."""
        return {part: _mib(self.folder.glob(files)) for part, files in PARTS_OF_STORE.items()}

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu_ms(self) -> dict[str, int]:
        """Processor time so far of the scheduler, and of its child that speaks HTTP; others here change it little."""
        spent = {"scheduler": _cpu_ms(self.process.pid)}
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            if "local.web.process" in Path(f"/proc/{child}/cmdline").read_text():
                spent["http"] = _cpu_ms(int(child))
        return spent

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def _cpu_ms(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")


def array(machine: Machine, parts: int) -> dict[str, Any]:
    begun, memory, cpu_ms = time.perf_counter(), [machine.rss_mib()], machine.cpu_ms()
    machine.submit("many", array=parts)
    done = 0
    while done < parts:
        time.sleep(LOOK_S)
        counts = machine.api.get("/v1/jobs/default/many")["counts"]
        done = sum(counts.get(phase, 0) for phase in ("Succeeded", "Failed"))
        if done >= parts // 2 and len(memory) == 1:
            memory.append(machine.rss_mib())
    seconds = time.perf_counter() - begun
    assert counts == {"Succeeded": parts}, counts
    memory.append(machine.rss_mib())
    spent = {who: round((ms - cpu_ms[who]) / parts, 2) for who, ms in machine.cpu_ms().items()}
    return {
        "parts": parts,
        "seconds": round(seconds, 1),
        "per_s": round(parts / seconds),
        "rss_mib": list(map(round, memory)),
        "cpu_ms_each": spent,
    }


def documents(machine: Machine, count: int) -> dict[str, Any]:
    begun, cpu_ms = time.perf_counter(), machine.cpu_ms()
    machine.submit(*(f"doc-{number}" for number in range(count)))
    while sum(not job["final"] for job in machine.api.get("/v1/jobs")):
        time.sleep(LOOK_S)
    seconds = time.perf_counter() - begun
    spent = {who: round((ms - cpu_ms[who]) / count, 2) for who, ms in machine.cpu_ms().items()}
    return {"jobs": count, "per_s": round(count / seconds), "cpu_ms_each": spent}


def singles(machine: Machine, count: int) -> dict[str, Any]:
    begun = time.perf_counter()
    for number in range(count):
        machine.submit(f"one-{number}")
    submitted = time.perf_counter() - begun
    while any(not job["final"] for job in machine.api.get("/v1/jobs")):
        time.sleep(LOOK_S)
    seconds = time.perf_counter() - begun
    return {"jobs": count, "submitted_per_s": round(count / submitted), "per_s": round(count / seconds)}


def batches(machine: Machine, count: int, parts: int) -> dict[str, Any]:
    """Equal work, again and again: what is on the disk after each, when everything is cleared away that may be."""
    seen: list[dict[str, Any]] = []
    for number in range(count):
        machine.run_array(f"batch-{number}", parts)
        while len(os.listdir(machine.folder / "runs")) > parts:
            time.sleep(LOOK_S)
        folders = len(os.listdir(machine.folder / "runs"))
        seen.append({"starts": (number + 1) * parts, "folders": folders, "mib": machine.on_disk_mib()})
    last, before = seen[-1]["mib"], seen[-2]["mib"]
    return {"parts": parts, "after": seen, "growth_mib": {part: round(last[part] - before[part], 2) for part in last}}


PARTS_OF_STORE = {"db": "optimus.db*", "runs": "runs/**/*", "journal": "journal/*"}


def _mib(files: Iterable[Path]) -> float:
    """On the disk: of a folder with three small files, three blocks and its own."""
    blocks = 0
    for file in files:
        with contextlib.suppress(FileNotFoundError):  # cleared away meanwhile
            blocks += file.stat().st_blocks
    return round(blocks * 512 / 2**20, 2)


def main(arguments: list[str] | None = None) -> int:
    parser = measuring.parser("machine", __doc__)
    parser.add_argument("--parts", type=int, default=PARTS)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--single", type=int, default=SINGLE)
    parser.add_argument("--batch", type=int, default=BATCH, help="parts of each of the equal batches")
    parser.add_argument("--journal", default="512Mi", metavar="SIZE", help="as of `optimus up`")
    chosen = parser.parse_args(arguments)
    bare = round(bare_per_s(BARE))
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder) / "store", "--journal", chosen.journal)
        try:
            many = array(machine, chosen.parts)
            in_one_file = documents(machine, chosen.documents)
            one_by_one = singles(machine, chosen.single)
        finally:
            machine.stop()
        store_mib = machine.on_disk_mib()
        machine = Machine(Path(folder) / "small", "--journal", chosen.journal, "--keep-parts", str(chosen.batch))
        try:
            again = batches(machine, BATCHES, chosen.batch)
        finally:
            machine.stop()
    print(f"bare start and wait: {bare:,} a second")
    print(f"an array of {many['parts']:,}: {many['per_s']} starts a second (asked: {TARGET})")
    print(f"processor time of each start in ms: {many['cpu_ms_each']}")
    print(f"memory of the scheduler: {many['rss_mib']} MiB")
    told = f"{in_one_file['per_s']} starts a second, {in_one_file['cpu_ms_each']}"
    print(f"{in_one_file['jobs']:,} jobs in one file: {told}")
    print(f"{one_by_one['jobs']} jobs: {one_by_one['submitted_per_s']} submitted, {one_by_one['per_s']} done a second")
    print(f"the store on the disk: {store_mib} MiB")
    for row in again["after"]:
        print(f"keeping {chosen.batch:,} starts, after {row['starts']:,}: {row['folders']:,} folders, {row['mib']} MiB")
    print(f"grown from the last batch but one to the last: {again['growth_mib']} MiB")
    if chosen.parts == PARTS:
        rows = {
            "bare_per_s": bare,
            "array": many,
            "documents": in_one_file,
            "single": one_by_one,
            "store_mib": store_mib,
            "batches": again,
        }
        measuring.write("machine", {"machine": measuring.machine(), **rows, "met": many["per_s"] >= TARGET})
    return 0 if many["per_s"] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
