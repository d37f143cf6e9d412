"""The picture under the story: every GPU, and what each queue has, is guaranteed and borrows.

Why: one look should show whose GPU is whose, who is leaving and who comes.
Owns: the blocks, their colours and letters; colour never says more than a letter does.
Must not: play.

    gpu-1  S›R S›R S›R S›R  ·   ·   ·   ·      S is leaving, the room is kept for R; a dot is free
    speech S ████▒▒▒▒   8 = 4 + 4 borrowed     █ inside its guarantee, ▒ borrowed, ░ guaranteed and idle
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text

from optimus.api.scenario import ExpectedState
from optimus.drivers.sim.book import Book, Entry
from optimus.drivers.sim.wording import natural, short
from optimus.model.nodes import WHOLE_DEVICE_MILLI, Node
from optimus.model.plans import Plan
from optimus.model.queues import GPU, Queue
from optimus.model.units import format_gpu

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
CELL = 3
WIDEST_BAR = 32
NUMBERS = 31
"""Columns for `16 = 4 + 12 borrowed, share 16`."""
JOBS = 24
LEGEND = " █ guaranteed  ▒ borrowed  ░ guaranteed but idle  S›V: S goes, V comes"


@dataclass(slots=True)
class OnDevice:
    here: list[Entry] = field(default_factory=list)
    leaving: list[Entry] = field(default_factory=list)
    coming: list[Entry] = field(default_factory=list)


class Picture:
    def __init__(self, book: Book) -> None:
        self.book = book
        leaves = list(dict.fromkeys([*_leaves(book), *(entry.spec.queue for entry in book.entries.values())]))
        self.colours = {queue: COLOURS[i % len(COLOURS)] for i, queue in enumerate(leaves)}
        self.letters = _letters(leaves)
        self.devices = _by_device(book)

    def draw(self, plan: Plan, width: int) -> list[Text]:
        """Lines that are no wider than `width`."""
        lines = [*self._grid(), Text(), *self._queues(plan, width), Text(LEGEND, style="dim")]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return lines

    # -- GPUs -------------------------------------------------------------------------------------------------

    def _grid(self) -> list[Text]:
        names = sorted(self.book.nodes, key=natural)
        margin = max(map(len, names), default=0)
        return [Text(f" {name:{margin}} ", style="dim") + self._row(self.book.nodes[name]) for name in names]

    def _row(self, node: Node) -> Text:
        row = Text()
        for device in node.devices:
            at = self.devices.get((node.name, device.index), OnDevice())
            here, leaving, coming = at.here, at.leaving, at.coming
            row.append(" ")
            if leaving and not here:
                row.append_text(self._pair(leaving[0], coming))
            elif here:
                queue = here[0].spec.queue
                text = self.letters[queue] if len(here) == 1 else f"{self.letters[queue]}+"
                row.append(text.center(CELL), style=f"bold black on {self.colours[queue]}")
            elif coming:
                row.append("›" + self.letters[coming[0].spec.queue] + " ", style=self.colours[coming[0].spec.queue])
            else:
                row.append(("·" if device.healthy and node.ready else "×").center(CELL), style="dim")
        return row

    def _pair(self, leaving: Entry, coming: list[Entry]) -> Text:
        queue = leaving.spec.queue
        arrow = f"{self.letters[queue]}›"
        to = self.letters[coming[0].spec.queue] if coming else " "
        return Text(arrow, style=f"black on {self.colours[queue]}") + Text(
            to, style=f"bold black on {self.colours[coming[0].spec.queue]}" if coming else ""
        )

    # -- queues -----------------------------------------------------------------------------------------------

    def _queues(self, plan: Plan, width: int) -> list[Text]:
        total = sum(len(node.devices) for node in self.book.nodes.values()) * WHOLE_DEVICE_MILLI
        margin = max(map(len, self.colours), default=0)
        bar = max(8, min(WIDEST_BAR, total // WHOLE_DEVICE_MILLI, width - margin - NUMBERS - JOBS))
        lines = []
        for queue, colour in self.colours.items():
            shares = [share for share in plan.shares if share.queue == queue and share.resource == GPU]
            used = sum(share.allocated for share in shares)
            due = sum(share.share for share in shares)
            guarantee = _guarantee(self.book.queues.get(queue))
            line = Text(f" {queue:{margin}} ") + Text(f" {self.letters[queue]} ", style=f"bold black on {colour}")
            line.append(" ").append_text(_bar(used, guarantee, total, bar, colour))
            line.append(" ").append(_numbers(used, guarantee, due).ljust(NUMBERS))
            line.append(f" {self._jobs(queue)}", style="dim")
            lines.append(line)
        return lines

    def _jobs(self, queue: str) -> str:
        said = []
        for entry in self.book.entries.values():
            state = entry.state
            if entry.spec.queue != queue or state in (ExpectedState.FINISHED, ExpectedState.STOPPED):
                continue
            number = len(entry.placed()) if state is ExpectedState.RUNNING else 0
            said.append(f"{short(entry.spec.id)} {number or _STATE_WORDS.get(state, state)}")
        return ", ".join(said)


_STATE_WORDS = {
    ExpectedState.HELD: "comes",
    ExpectedState.STOPPING: "leaves",
    ExpectedState.PENDING: "waits",
}


def _by_device(book: Book) -> dict[tuple[str, int], OnDevice]:
    found: dict[tuple[str, int], OnDevice] = {}
    for entry in book.entries.values():
        for leaving, replicas in ((False, entry.live), (True, entry.leaving)):
            for replica in replicas.values():
                for device in replica.devices:
                    at = found.setdefault((replica.node, device), OnDevice())
                    side = at.leaving if leaving else at.coming if replica.promised else at.here
                    side.append(entry)
    return found


def _numbers(used: int, guarantee: int, due: int) -> str:
    borrowed = max(0, used - guarantee)
    if borrowed:
        return (
            f"{format_gpu(used)} = {format_gpu(guarantee)} + {format_gpu(borrowed)} borrowed, share {format_gpu(due)}"
        )
    return f"{format_gpu(used)} of {format_gpu(guarantee)} guaranteed"


def _bar(used: int, guarantee: int, total: int, width: int, colour: str) -> Text:
    def cells(amount: int) -> int:
        return round(amount * width / total) if total else 0

    inside = cells(min(used, guarantee))
    borrowed = cells(max(used, guarantee)) - cells(guarantee) if used > guarantee else 0
    idle = max(0, cells(guarantee) - inside)
    text = Text("█" * inside, style=colour) + Text("▒" * borrowed, style=colour) + Text("░" * idle, style="dim")
    return text + Text(" " * max(0, width - inside - borrowed - idle))


def _guarantee(queue: Queue | None) -> int:
    if queue is None:
        return 0
    return sum(quota.resources[GPU].guarantee for quota in queue.quotas if GPU in quota.resources)


def _leaves(book: Book) -> list[str]:
    parents = {queue.parent for queue in book.queues.values()}
    return [name for name in book.queues if name not in parents]


def _letters(names: list[str]) -> dict[str, str]:
    """A letter for each: its first one that is still free, else a number."""
    found: dict[str, str] = {}
    for name in names:
        choices = [*name.upper(), *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
        found[name] = next((c for c in choices if c.isalnum() and c not in found.values()), "?")
    return found
