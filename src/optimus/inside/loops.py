"""`steps`: a loop that resumes where it was, saves in time, and leaves when asked.

A step counts as done when the script asks for the next one. Only there, where step and state agree, is anything saved.
One checkpoint holds the state and the places of all loops inside each other; the state belongs to the outermost.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, MutableMapping

from optimus.inside import contract, states
from optimus.inside.asking import REQUEST
from optimus.inside.checkpoints import Checkpoint, Checkpoints
from optimus.inside.contract import CheckpointError, CheckpointWarning
from optimus.inside.status import STATUS
from optimus.inside.together import Departure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from optimus.inside.checkpoints import Save

DEFAULT_SECONDS = 600.0
LARGEST_SHARE = 0.05
"""Saves that nobody asked for take at most this part of the time, unless every= or every_seconds= says otherwise."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
NEVER = float("inf")


class Nesting(threading.local):
    """The loops that this thread is in, outermost first."""

    def __init__(self) -> None:
        self.running: list[Run] = []


NESTING = Nesting()
FINISHED: set[str] = set()
"""Folders of loops that this process has run to their end."""


def steps(
    items: int | Iterable[Any],
    *,
    state: Any = None,
    save: Save | None = None,
    load: Save | None = None,
    every: int | None = None,
    every_seconds: float | None = None,
    keep: int = 2,
    name: str = "steps",
    folder: str | os.PathLike[str] | None = None,
    every_rank: bool = False,
) -> Loop:
    """The steps that remain after the last checkpoint.

    items          a number of steps, or what to go through; it must come in the same order in every attempt
    state          what has to come back: a dict, a list, or something with state_dict() and load_state_dict()
    save, load     called with a path where they write or read a file or a folder, for what is too large to be pickled
    every          save after so many steps
    every_seconds  save after so many seconds; with neither, every 600 s, less often where saving is slow
    keep           so many checkpoints stay
    name           tells the loops of one script apart
    folder         where to save when Optimus gives no folder; with neither, nothing is saved
    every_rank     replicas that do not train one model: each saves its own work; otherwise only rank 0 saves
    """
    if (save is None) != (load is None):
        raise CheckpointError("save= and load= belong together: what is written must be read again")
    if every is not None and every < 1:
        raise CheckpointError(f"every= is a number of steps and at least 1, not {every}")
    if every_seconds is not None and every_seconds <= 0:
        raise CheckpointError(f"every_seconds= must be more than 0, not {every_seconds}; leave it out for every 600 s")
    if keep < 1:
        raise CheckpointError(f"keep= is at least 1, not {keep}: without any checkpoint nothing can resume")
    if not NAME.match(name):
        raise CheckpointError(f"name= becomes the name of a folder: letters, digits, '.', '_' and '-', not {name!r}")
    states.check_kind(state)
    place = contract.text(contract.CHECKPOINT_DIR) or ("" if folder is None else os.fspath(folder))
    return Loop(
        range(items) if isinstance(items, int) else items,
        name=name,
        work=Work(state, save, load, os.path.join(place, name) if place else "", keep, every_rank=every_rank),
        every=every,
        every_seconds=every_seconds,
    )


class Loop:
    """What `steps` returns: to be gone through once. Its length is that of the whole, for progress bars."""

    def __init__(
        self, items: Iterable[Any], *, name: str, work: Work, every: int | None, every_seconds: float | None
    ) -> None:
        self.items, self.name, self.work, self.every, self.every_seconds = items, name, work, every, every_seconds

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        run = Run(self)
        run.begin()
        try:
            yield from self._remaining(run)
        finally:
            run.end()

    def _remaining(self, run: Run) -> Iterator[Any]:
        request, pace, clock = REQUEST, run.root.pace, time.monotonic
        if request.asked:
            run.leave()
        for item in remaining(self.items, run):
            yield item
            run.position += 1
            if run.inner_begun or run.resumed_inside:
                run.leave_behind_what_was_inside()
            pace.done += 1
            if request.asked or clock() >= pace.due or run.position == run.save_at:
                run.between_steps()
        run.finish()


def remaining(items: Iterable[Any], run: Run) -> Iterable[Any]:
    if run.over:
        return ()
    if isinstance(items, range):
        return items[run.position :]
    return itertools.islice(items, run.position, None) if run.position else items


class Pace:
    """When something other than training is due next, and how much is done; shared by loops inside each other."""

    def __init__(self, seconds: float | None, *, adapts: bool) -> None:
        self.seconds, self.adapts = seconds, adapts
        self.done = 0
        self.due = 0.0
        self.next_save = NEVER

    def start(self) -> None:
        self.saved_in(0.0)

    def saved_in(self, spent: float) -> None:
        if self.seconds is not None:
            wait = max(self.seconds, spent / LARGEST_SHARE) if self.adapts else self.seconds
            self.next_save = time.monotonic() + wait


class Work:
    """What the outermost loop saves and resumes, and where."""

    def __init__(
        self, state: Any, save: Save | None, load: Save | None, folder: str, keep: int, *, every_rank: bool
    ) -> None:
        self.state, self.save, self.load = state, save, load
        self.rank = contract.rank()
        alone = every_rank or contract.replicas() <= 1
        if every_rank and folder:
            folder = os.path.join(folder, f"rank-{self.rank}")
        self.checkpoints = Checkpoints(folder, keep) if folder else None
        self.saves = self.checkpoints is not None and (alone or self.rank == 0)
        self.departure = Departure(folder, rank=self.rank) if folder and not alone else None
        self.first_keys = tuple(state) if isinstance(state, MutableMapping) else ()
        self.saved_after: int | None = None
        self.save_seconds: float | None = None
        """What a save takes; None while nobody knows."""

    @property
    def is_given(self) -> bool:
        return self.state is not None or self.save is not None

    def prepare(self) -> None:
        if self.saves and self.checkpoints is not None:
            self.checkpoints.prepare()
            begun = time.monotonic()
            states.check_saveable(self.state)
            self.save_seconds = time.monotonic() - begun if self.save is None else None
        if self.departure is not None:
            self.departure.prepare()

    def resume(self) -> Checkpoint | None:
        if self.checkpoints is None:
            return None
        return self.checkpoints.resume(lambda _, value: states.put_back(self.state, value), self.load, mend=self.saves)

    def write(self, run: Run, done: int) -> None:
        """Once for each place. What goes wrong is said, and training goes on with the checkpoint before."""
        if not self.saves or self.checkpoints is None or self.saved_after == done:
            return
        about = {"loops": run.places(), "attempt": contract.whole_number(contract.ATTEMPT, 1)}
        REQUEST.saving = True
        begun = time.monotonic()
        try:
            value = states.taken(self.state, self.first_keys)
            STATUS.saved(self.checkpoints.write(about, run.position, self.state, value, self.save))
            self.saved_after = done
            self.save_seconds = time.monotonic() - begun
        except Exception as error:  # noqa: BLE001 - a script's own save= may raise anything, and hours of work go on
            STATUS.problem = f"no checkpoint at step {run.position}: {error}"
            before = STATUS.checkpoint
            kept = f"the one of step {before['step']} is kept" if before else "there is none before"
            warnings.warn(
                f"{STATUS.problem}; {kept}, and training goes on. Is {self.checkpoints.folder} full?",
                CheckpointWarning,
                stacklevel=2,
            )
        finally:
            REQUEST.saving = False
            if REQUEST.hurried:
                leave_at_once()


def leave_at_once() -> None:
    """Asked again during the save, which is over now."""
    STATUS.phase = "left"
    STATUS.write(time.monotonic())
    os._exit(contract.LEFT_ON_REQUEST)


class Run:
    """One loop that is being gone through."""

    def __init__(self, loop: Loop) -> None:
        self.loop, self.work = loop, loop.work
        self.parent: Run | None = NESTING.running[-1] if NESTING.running else None
        self.root: Run = self.parent.root if self.parent else self
        self.position = 0
        self.save_at: int | None = None
        self.over = False
        """It was gone through before the checkpoint was written."""
        self.inner_begun = 0
        """Loops inside the present step."""
        self.inner_ended = 0
        self.resumed_inside: list[dict[str, Any]] = []
        """Places of the loops inside the step that is resumed."""
        self.listens = False
        self.pace = Pace(None, adapts=False)
        try:
            self.total: int | None = len(loop.items)  # type: ignore[arg-type]
        except TypeError:
            self.total = None

    # ----------------------------------------------------------------------------------------- begin and end

    def begin(self) -> None:
        if self.parent is None:
            self._begin_outermost()
        else:
            self._begin_inside(self.parent)
        if self.loop.every is not None:
            self.save_at = self.position + self.loop.every
        NESTING.running.append(self)
        REQUEST.loops += 1
        STATUS.look = self.root.look
        self.report(time.monotonic())

    def _begin_outermost(self) -> None:
        loop, work = self.loop, self.work
        if work.checkpoints is not None and work.checkpoints.folder in FINISHED and work.checkpoints.newest_first():
            raise CheckpointError(
                f"the loop {loop.name!r} has already run to its end in this process, and would resume there. Give each "
                f"loop of a script its own name=, or remove {work.checkpoints.folder} to start again."
            )
        seconds = loop.every_seconds or (DEFAULT_SECONDS if loop.every is None else None)
        self.pace = Pace(seconds if work.saves else None, adapts=loop.every_seconds is None)
        STATUS.begin(loop.name, self.total)
        work.prepare()
        checkpoint = work.resume()
        if checkpoint is not None:
            first, *inside = checkpoint.about["loops"]
            self.position, self.inner_ended, self.resumed_inside = first["step"], first["inner_ended"], inside
            work.saved_after = 0
            if work.saves:  # one rank speaks of checkpoints, and it is the one that knows the newest
                STATUS.saved(checkpoint)
        self.pace.start()
        if work.checkpoints is not None or REQUEST.savers or contract.text(contract.STATUS_FILE):
            self.listens = REQUEST.listen()

    def _begin_inside(self, parent: Run) -> None:
        if self.work.is_given:
            raise CheckpointError(
                f"the loop {self.loop.name!r} is inside the loop {parent.loop.name!r}: give state=, save= and load= to "
                "the outermost one. It is saved after the steps of this one as well, together with the places of both."
            )
        mine = parent.inner_begun
        parent.inner_begun += 1
        if mine < parent.inner_ended:
            self.over = True
        elif mine == parent.inner_ended and parent.resumed_inside:
            place, *inside = parent.resumed_inside
            self.position, self.inner_ended, self.resumed_inside = place["step"], place["inner_ended"], inside
        parent.resumed_inside = parent.resumed_inside if self.over else []

    def end(self) -> None:
        """However it ended."""
        while NESTING.running and NESTING.running.pop() is not self:
            pass
        REQUEST.loops -= 1
        if self.parent is not None:
            self.parent.inner_ended = max(self.parent.inner_ended, self.parent.inner_begun)
        else:
            if STATUS.phase == "running":
                STATUS.phase = "stopped"
            STATUS.write(time.monotonic())
            STATUS.look = None
        if self.listens:
            self.listens = False
            REQUEST.stop_listening()

    def finish(self) -> None:
        """All steps are done. What the script does after the outermost loop it may still do, asked to leave or not."""
        if self.parent is None:
            self.work.write(self, self.pace.done)
            if self.work.checkpoints is not None:
                FINISHED.add(self.work.checkpoints.folder)
            self.report(time.monotonic())
            STATUS.phase = "finished"

    # ------------------------------------------------------------------------------------------ between steps

    def leave_behind_what_was_inside(self) -> None:
        self.inner_begun = self.inner_ended = 0
        self.resumed_inside = []

    def between_steps(self) -> None:
        now, root = time.monotonic(), self.root
        pace, work = root.pace, root.work
        root.look(now)  # paces are measured where a step ends: in the middle of one, part of it is done and not counted
        if REQUEST.asked and not (self is root and self.position == self.total) and self._may_leave():
            self.leave()
        if work.departure is not None and not REQUEST.asked and work.departure.look(now, pace.done, STATUS.rate or 1.0):
            REQUEST.asked, REQUEST.asked_at = True, now
        if self.position == self.save_at or now >= pace.next_save:
            work.write(root, pace.done)
            after = time.monotonic()
            pace.saved_in(after - now)
            if self.loop.every is not None:
                self.save_at = self.position + self.loop.every
            STATUS.next_at = now
        if now >= STATUS.next_at:
            self.report(now)
        pace.due = min(pace.next_save, STATUS.next_at)

    def _may_leave(self) -> bool:
        departure = self.root.work.departure
        return departure is None or departure.is_now(self.root.pace.done, REQUEST.asked_at, STATUS.rate or 1.0)

    def leave(self) -> None:
        root = self.root
        root.work.write(root, root.pace.done)
        for saver in REQUEST.savers:
            saver()
        STATUS.phase = "left"
        self.report(time.monotonic())
        REQUEST.call_previous()
        raise contract.AskedToLeave

    def report(self, now: float) -> None:
        STATUS.write(now)
        self.root.pace.due = min(self.root.pace.next_save, STATUS.next_at)

    def look(self, now: float) -> None:
        STATUS.progress(self.position, self.fraction(), self.pace.done, now)
        STATUS.leaves_in = self.leaves_in()

    def leaves_in(self) -> float | None:
        """How long it takes to leave with everything saved, once it is asked; None if that is not known."""
        spent, rate = self.work.save_seconds, STATUS.rate
        if not self.listens or spent is None or not rate:
            return None
        return spent + (1 if self.work.departure is None else 2) / rate

    def fraction(self) -> float | None:
        """Counts what is done of the loops inside."""
        share = 0.0
        for run in reversed(NESTING.running or [self]):
            share = (run.position + share) / run.total if run.total else 0.0
        return share if self.total else None

    def places(self) -> list[dict[str, Any]]:
        running = NESTING.running or [self]
        return [{"name": run.loop.name, "step": run.position, "inner_ended": run.inner_ended} for run in running]
