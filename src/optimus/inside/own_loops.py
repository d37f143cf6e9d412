"""For scripts that keep their own loop: where to save, whether to leave, and how to say what was saved."""

from __future__ import annotations

import time

from optimus.inside import contract
from optimus.inside.asking import REQUEST
from optimus.inside.status import STATUS, light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Callable, TypeVar

    Saver = TypeVar("Saver", bound=Callable[[], object])


def checkpoint_dir(default: str | None = None) -> Path | None:
    """The folder that outlives attempts, made if needed; outside of Optimus the default, or None."""
    from pathlib import Path

    named = contract.text(contract.CHECKPOINT_DIR) or default
    if not named:
        return None
    path = Path(named)
    path.mkdir(parents=True, exist_ok=True)
    return path


def attempt() -> int:
    """1 for the first start, and outside of Optimus."""
    return contract.whole_number(contract.ATTEMPT, 1)


def reason() -> str:
    """Why this attempt was started; empty outside of Optimus."""
    return contract.text(contract.REASON)


def asked_to_leave() -> bool:
    """Whether to save and leave now. Listens from the first call on: call it once before the loop."""
    if not REQUEST.listening:
        REQUEST.listen()
    REQUEST.seen = REQUEST.asked
    return REQUEST.asked


def save_on_request(saver: Saver) -> Saver:
    """Call this when asked to leave, then leave with exit code 143.

    Inside `steps` it is called between two steps, after the checkpoint. Without such a loop it is called at once, in
    the middle of what the main thread is doing: what it saves must make sense there. It may be used as a decorator.
    """
    REQUEST.savers.append(saver)
    REQUEST.leave_from_handler = leave_at_once
    if not REQUEST.listening:
        REQUEST.listen()
    return saver


def leave_at_once() -> None:
    REQUEST.saving = True
    for saver in REQUEST.savers:
        saver()
    STATUS.saved_at(STATUS.step, time.time_ns() // 1_000_000)
    STATUS.phase = "left"
    STATUS.write(time.monotonic())
    REQUEST.call_previous()
    raise contract.AskedToLeave


def checkpointed(step: int | None = None) -> None:
    """Say that the script has just saved its work: being stopped now would cost little."""
    STATUS.saved_at(step, time.time_ns() // 1_000_000)
    STATUS.write(time.monotonic())


def report(*, step: int | None = None, total: int | None = None, epoch: Any = None, **metrics: Any) -> None:
    """Show numbers with the job: `report(loss=0.3)`. Cheap: the newest are written once a second.

    step, total  progress of a loop of one's own; `steps` says both by itself
    """
    if step is not None and not REQUEST.loops:
        STATUS.total = total if total is not None else STATUS.total
        STATUS.progress(step, step / STATUS.total if STATUS.total else None, step, time.monotonic())
    if epoch is not None:
        STATUS.epoch = light(epoch)
    for name, value in metrics.items():
        STATUS.metrics[name] = light(value)
    STATUS.write_if_due()
