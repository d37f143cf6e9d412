"""Work that keeps coming while a scheduler is killed again and again, and what must have become of it.

Waves are submitted by a thread that never waits for the scheduler to be well: some are submitted at the very moment in
which it dies. Of a wave that was acknowledged everything must have happened, exactly once; one of which no answer came
may be there as a whole or not at all.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from optimus.client import ApiError, Connection, Unreachable
from tests.local.machines import Up

PARTS = 24
RETRIES = 1
Kind = Literal["array", "broken", "cancelled"]
DOCUMENT = "kind: UnifiedJob\nmetadata: {{name: {name}}}\nspec: {{gpu: 1, {spec}}}\n"


class Wave(NamedTuple):
    name: str
    kind: Kind
    acknowledged: bool


class Waves:
    def __init__(self, machine: Up, folder: Path, luck: random.Random) -> None:
        self.waves: list[Wave] = []
        self.ran, self.tried = folder / "ran.txt", folder / "tried.txt"
        for file in (self.ran, self.tried):
            file.touch()
        self._machine, self._luck = machine, luck
        self._over = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _go(self) -> None:
        try:
            self._come()
        except Exception as error:  # noqa: BLE001 - told by `end`
            self._fault = error

    def _come(self) -> None:
        while not self._over.wait(self._luck.uniform(0.05, 0.5)):
            kind: Kind = self._luck.choices(("array", "broken", "cancelled"), (8, 1, 1))[0]
            name = f"{kind}-{len(self.waves)}"
            text = DOCUMENT.format(name=name, spec=self._spec(name, kind)).encode()
            told = self._told("POST", "/v1/submit", text)
            self.waves.append(Wave(name, kind, told))
            if kind == "cancelled" and told:
                time.sleep(self._luck.uniform(0.0, 0.3))
                self._told("DELETE", f"/v1/jobs/default/{name}")

    def _told(self, method: str, path: str, body: bytes = b"") -> bool:
        """Whether the scheduler has answered that it is so."""
        api = self._machine.api
        try:
            asked = Connection(api.address, api.token, timeout=20.0)
            asked.delete(path) if method == "DELETE" else asked.post(path, body)
        except Unreachable:  # it is dead, or died while it was asked
            return False
        except ApiError as error:
            if error.status < 500:
                raise
            return False  # who answers for it said that it has gone
        return True

    def _spec(self, name: str, kind: Kind) -> str:
        if kind == "array":
            nap = self._luck.uniform(0.1, 0.5)
            return (
                f"arraySize: {PARTS}, command: [bash, -c, 'echo {name} $OPTIMUS_PART >> {self.ran}; sleep {nap:.2f}']"
            )
        if kind == "broken":
            limits = f"restart: {{backoffLimit: {RETRIES}, backoffSeconds: 1}}"
            return f"command: [bash, -c, 'echo {name} >> {self.tried}; exit 3'], {limits}"
        return "command: [sleep, '600']"

    # -- what has become of it ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Who was to be cancelled is, also where nobody heard of it."""
        for wave in self.waves:
            if wave.kind == "cancelled" and (view := self._found(wave)) is not None and not view["final"]:
                self._machine.api.delete(f"/v1/jobs/default/{wave.name}")

    def is_over(self) -> bool:
        return all(view is None or view["final"] for view in map(self._found, self.waves))

    def wrong(self) -> list[str]:
        ran = Counter(tuple(line.split()) for line in self.ran.read_text().splitlines())
        tried = Counter(self.tried.read_text().split())
        return [
            text
            for wave in self.waves
            for text in _wrong(wave, self._found(wave), _of(ran, wave.name), tried[wave.name])
        ]

    def _found(self, wave: Wave) -> dict[str, Any] | None:
        try:
            return self._machine.job(wave.name)
        except ApiError as error:
            if error.status != 404:
                raise
            return None


def _of(ran: Counter[tuple[str, ...]], name: str) -> Counter[str]:
    return Counter({line[1]: count for line, count in ran.items() if line[0] == name and len(line) == 2})


def _wrong(wave: Wave, view: dict[str, Any] | None, ran: Counter[str], tries: int) -> list[str]:
    if view is None:
        if wave.acknowledged:
            return [f"{wave.name} was acknowledged, and is lost"]
        return [f"{wave.name} is not there, and has run"] if ran or tries else []
    if wave.kind == "cancelled":
        return [] if view["phase"] == "Cancelled" else [f"{wave.name} is {view['phase']}"]
    if wave.kind == "broken":
        right = tries == RETRIES + 1 + view["preemptions"] and view["phase"] == "Failed"
        return [] if right else [f"{wave.name} is {view['phase']} after {tries} tries, {view['preemptions']} preempted"]
    again = ran - Counter(set(ran))
    if view["counts"] != {"Succeeded": PARTS} or len(ran) != PARTS or again.total() > view["preemptions"]:
        return [f"{wave.name}: {view['counts']}, {len(ran)} of {PARTS} parts ran, twice: {sorted(again)[:5]}"]
    return []
