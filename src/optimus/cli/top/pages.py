"""Pages above the view: a job described, what a command says as it comes, a question, the keys."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from optimus.cli.top import reports
from optimus.cli.top.asking import in_background
from optimus.cli.top.panes import Lines
from optimus.cli.top.pieces import Line, Piece
from optimus.client import JobError
from optimus.client.targets import Target

MOST_LINES = 10_000
BETWEEN_S = 0.2
LONGEST_LINE = 1 << 20
LEAVE_S = 2.0
BACK: list[BindingType] = [
    Binding("escape,q", "back", "Back"),
    Binding("up,k", "scroll(-1)", show=False),
    Binding("down,j", "scroll(1)", show=False),
]


class Page(ModalScreen[None]):
    """A title, lines that scroll, and a last line that says what can be done."""

    BINDINGS: ClassVar[list[BindingType]] = BACK

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical(id="page"):
            yield Lines("text")
            yield Static("Esc back", id="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one("#page").border_title = self._title.replace("[", r"\[")
        self.query_one(Lines).focus()

    @property
    def is_left(self) -> bool:
        """Off the stack, which happens before its lines are taken away, and before it is told so."""
        return not self.is_attached or self not in self.app.screen_stack

    def put(self, lines: list[Line], hint: str = "Esc back") -> None:
        self.query_one(Lines).show(len(lines), lambda index: lines[index])
        self.query_one("#hint", Static).update(hint)

    def action_back(self) -> None:
        self.dismiss()

    def action_scroll(self, by: int) -> None:
        self.query_one(Lines).scroll_relative(y=by, animate=False)


class Described(Page):
    """Of one job, told anew whenever it changes."""

    def __init__(self, target: Target, job: str) -> None:
        super().__init__(f"describe {job}")
        self.job = job
        self._target = target
        self._lines: list[Line] = [(Piece("asked …", "dim"),)]
        self._asks = self._again = False

    def on_mount(self) -> None:
        super().on_mount()
        self.put(self._lines)
        self.changed()

    def on_lines_resized(self) -> None:
        self.changed()

    def changed(self) -> None:
        """Asks once more, unless it is being asked."""
        self._again = self._asks
        if not self._asks:
            self._asks = True
            width = max(self.query_one(Lines).room, 20)
            in_background(lambda: self._asked(width), self._told)

    def _asked(self, width: int) -> list[Line] | JobError:
        try:
            return reports.described(self._target.job(self.job), self._target.happenings(self.job), width)
        except JobError as error:
            return error
        except (KeyError, TypeError, ValueError) as error:
            return JobError(f"{self._target.address} tells something else than this version reads: {error!r}")

    def _told(self, answer: list[Line] | JobError) -> None:
        self._asks = False
        if self.is_left:
            return
        if isinstance(answer, JobError):
            self.put(self._lines, f"{answer}  Esc back")
        else:
            self._lines = answer
            self.put(answer)
        if self._again:
            self.changed()


class Said(Page):
    """What a command says, as it comes. It ends with the page."""

    def __init__(self, title: str, words: list[str], *, follow: bool) -> None:
        super().__init__(title)
        self._words = words
        self._follow = follow
        self._came: deque[Line] = deque(maxlen=MOST_LINES)
        self._process: asyncio.subprocess.Process | None = None
        self._fresh = False
        self._hint = "Esc back" if follow else "working …  Esc stops it"

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(BETWEEN_S, self._draw)
        self._fresh = True
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """Once it is known how wide a line is; it may have been left already."""
        if not self.is_left:
            self._listen(max(self.query_one(Lines).room - 1, 20))

    @work
    async def _listen(self, width: int) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            limit=LONGEST_LINE,
            env=reports.surroundings(width),
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            complaints = asyncio.create_task(process.stderr.read())
            while raw := await _line_of(process.stdout):
                self._came.extend(reports.lines_of(raw.decode(errors="replace").rstrip("\r\n")) or [(Piece(""),)])
                self._fresh = True
            refused = await process.wait()
            said = reports.lines_of((await complaints).decode(errors="replace"))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        self._hint = "Esc back"
        if refused or not self._came:
            self._came.extend(line for line in said if any(piece.text.strip() for piece in line))
        if self._follow:
            self._came.append((Piece("that was all: it is over", "dim"),))
        self._fresh = True
        self._draw()

    def _draw(self) -> None:
        if not self._fresh or self.is_left:
            return
        self._fresh = False
        view = self.query_one(Lines)
        at_the_end = view.scroll_offset.y >= view.max_scroll_y
        self.put(list(self._came) or [(Piece("nothing yet", "dim"),)], self._hint)
        if self._follow and at_the_end:
            view.scroll_end(animate=False, immediate=True)


async def _line_of(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # longer than anybody reads
        return b"(a line that is too long)\n"


class Question(ModalScreen[bool]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q,enter", "answer(False)", "No"),
    ]

    def __init__(self, text: str, yes: str, no: str) -> None:
        super().__init__()
        self._text, self._yes, self._no = text, yes, no

    def compose(self) -> ComposeResult:
        with Vertical(id="question"):
            yield Static(self._text, markup=False)
            yield Static(f"\ny {self._yes}   n {self._no}", markup=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Keys(Page):
    def __init__(self, lines: list[Line]) -> None:
        super().__init__("keys")
        self._lines = lines

    def on_mount(self) -> None:
        super().on_mount()
        self.put(self._lines)
