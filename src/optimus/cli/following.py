"""Following: the output of a job as it comes, and what happens to it meanwhile."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import sys
import termios
import threading
from types import FrameType
from typing import NoReturn

import typer
from rich.text import Text

from optimus.cli.showing import console, hang_up, say
from optimus.client import JobError
from optimus.client.targets import Target, View

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan", "bright_magenta")
INTERRUPTED = 130
HINT_S = 1.0
"""So long after Ctrl-C it is told what is waited for."""


def to_the_end(target: Target, job: str) -> str:
    """Show output and changes of phase until it is over. Ctrl-C cancels, and so does SIGTERM: nobody would know of a
    job that a script has given up. Returns the last phase."""
    say(f"job {job} submitted", "dim")
    told = _mention_input()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    leaving = Leaving(target, job)
    leaving.listen()
    watching = threading.Thread(target=_phases, args=(target, job), daemon=True)
    watching.start()
    try:
        show(target, job, follow=True, tell=False)
        if leaving.begun:
            leaving.end()
        watching.join(10)
        view = target.job(job)
    except KeyboardInterrupt:
        leaving.end()
    except JobError:
        if leaving.begun:  # on a cluster, what is cancelled may be gone
            leaving.end()
        raise
    except BrokenPipeError:
        hang_up()
        say(f"nobody reads its output any more; job {job} goes on", "yellow")
        raise typer.Exit(1) from None
    if not told:  # it may have come late
        _mention_input()
    phase = str(view["phase"])
    say(f"job {job} {_phase(view)}", "green" if phase == "Succeeded" else "red")
    return phase


def show(
    target: Target,
    job: str,
    *,
    follow: bool,
    tail: int | None = None,
    replica: str = "",
    attempt: int | None = None,
    part: int | None = None,
    tell: bool = True,
) -> None:
    """Lines of all replicas, as they were written; each says whose it is where there are several. `tell`: where there
    is nothing to show, say why."""
    view = target.job(job)
    names = Names() if view["maxReplicas"] > 1 or view["counts"] else None
    wrote = False
    if tell and follow and not view["final"] and not view["replicas"]:
        say(f"job {job} {_phase(view)}", "dim")
    for line in target.output(job, follow=follow, tail=tail, replica=replica, attempt=attempt, part=part):
        wrote, text = True, line["text"]
        if names is not None:
            before = names.before(line["replica"])
            text = before + text.replace("\n", f"\n{before}")
        sys.stdout.write(f"{text}\n")
        if follow:
            sys.stdout.flush()
    sys.stdout.flush()
    if tell and not wrote and tail != 0:
        who = f"job {job}" if part is None else f"part {part} of job {job}"
        say(f"{who} has written nothing ({_phase(view)})", "dim")


class Names:
    """What stands before the lines of each replica, made once: a line may be one of millions."""

    def __init__(self) -> None:
        self._out = console()
        self._made: dict[str, str] = {}
        self._colours: dict[str, str] = {}
        self._wide = 0

    def before(self, replica: str) -> str:
        found = self._made.get(replica)
        return self._make(replica) if found is None else found

    def _make(self, replica: str) -> str:
        colour = self._colours.setdefault(replica, COLOURS[len(self._colours) % len(COLOURS)])
        if len(replica) > self._wide:
            self._wide = len(replica)
            self._made.clear()
        with self._out.capture() as made:
            self._out.print(Text(f"{replica:<{self._wide}}", style=colour) + Text(" │ ", style="dim"), end="")
        self._made[replica] = made.get()
        return self._made[replica]


class Leaving:
    """Ctrl-C: the job is cancelled, and what it still says while it leaves is shown; a second one does not wait for
    that. It is cancelled in a thread, since the output goes on in this one."""

    def __init__(self, target: Target, job: str) -> None:
        self._target, self._job = target, job
        self._cancelling: threading.Thread | None = None
        self._over = threading.Event()

    @property
    def begun(self) -> bool:
        return self._cancelling is not None

    def listen(self) -> None:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in a script that put it into the background
            signal.signal(signal.SIGINT, self._interrupted)

    def end(self) -> NoReturn:
        """Not before the scheduler knows of it: two keys pressed at once must not leave the job running."""
        self._over.set()
        if self._cancelling is None:
            self._cancel()
        else:
            self._cancelling.join()
        raise typer.Exit(INTERRUPTED) from None

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        if self._cancelling is not None:
            raise KeyboardInterrupt
        self._cancelling = threading.Thread(target=self._cancel_and_wait, daemon=True)
        self._cancelling.start()

    def _cancel_and_wait(self) -> None:
        if not self._cancel():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        elif not self._over.wait(HINT_S):
            say("it is still leaving, and its last output is shown; Ctrl-C once more does not wait for it", "dim")

    def _cancel(self) -> bool:
        try:
            self._target.cancel(self._job)
        except JobError as error:
            say(f"\njob {self._job} was not cancelled: {error}", "red")
            return False
        say(f"\njob {self._job} cancelled", "yellow")
        return True


def _mention_input() -> bool:
    """Whether it was said that nobody reads what is piped in. A terminal, nothing at all and a pipe that nobody writes
    into, as scripts have them, are no input."""
    if sys.stdin is None or sys.stdin.closed:
        return False
    try:
        number = sys.stdin.fileno()
        kind = os.fstat(number)
        if stat.S_ISFIFO(kind.st_mode):
            waiting = int.from_bytes(fcntl.ioctl(number, termios.FIONREAD, bytes(4)), sys.byteorder) > 0
        else:
            waiting = stat.S_ISREG(kind.st_mode) and kind.st_size > os.lseek(number, 0, os.SEEK_CUR)
    except (OSError, ValueError):
        return False
    if waiting:
        say("what is piped in is not read: a job has no input. Let its command read a file", "yellow")
    return waiting


def _phases(target: Target, job: str) -> None:
    """On the error stream, so that output can be piped on."""
    last = ""
    try:
        for view in target.watch(job):
            if view["final"]:
                return
            if _phase(view) != last:
                last = _phase(view)
                say(f"job {job} {last}", "dim")
                warn_of_waiting(view)
    except JobError:  # whoever follows the output says so
        return


def warn_of_waiting(view: View) -> None:
    """For something that never comes, as long as nobody changes anything."""
    from optimus.model.reasons import NEVER_AS_IT_IS

    reason = view["reason"]
    if reason is not None and reason["code"] in NEVER_AS_IT_IS:
        told = f"Warning: as it is, it never starts: {reason['text']}"
        console(stderr=True).print(told, style="yellow", markup=False)


def _phase(view: View) -> str:
    reason = f": {view['reason']['text']}" if view.get("reason") else ""
    return f"{view['phase']}{reason}"
