"""Panes: many lines of which only those that are seen are drawn, and rows that can be chosen."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from optimus.cli.top.pieces import Line, plain

BRIGHT = "bold reverse"
Draw = Callable[[int], Line]


@lru_cache(512)
def style_of(words: str) -> Style:
    return Style.parse(words)


class Lines(ScrollView, can_focus=True):
    """Lines that scroll; a head stays."""

    DEFAULT_CSS = "Lines { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }"

    class Resized(Message):
        """There is another width to draw for."""

    class Pointed(Message):
        """Somebody has clicked there."""

        def __init__(self, lines: Lines, index: int, x: int) -> None:
            super().__init__()
            self.lines, self.index, self.x = lines, index, x

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - textual's word
        super().__init__(id=id)
        self._count = 0
        self._draw: Draw = lambda _: ()
        self._head: Line = ()
        self._base = Style()

    def show(self, count: int, draw: Draw, head: Line = ()) -> None:
        """From now on these; `draw` is asked for a line when it is seen."""
        self._count, self._draw, self._head = count, draw, head
        self._base = self.rich_style  # found out once, not for every line
        size = Size(self.scrollable_content_region.width, count + bool(head))
        if size != self.virtual_size:
            self.virtual_size = size
        self.refresh()

    @property
    def room(self) -> int:
        """Cells of a line."""
        return self.scrollable_content_region.width

    def on_resize(self, _event: Resize) -> None:
        self.virtual_size = Size(self.room, self._count + bool(self._head))
        self.post_message(self.Resized())

    def on_click(self, event: Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y < bool(self._head):
            return
        index = at.y + self.scroll_offset.y - bool(self._head)
        if index < self._count:
            self.pointed(index, at.x)

    def pointed(self, index: int, x: int) -> None:
        self.post_message(self.Pointed(self, index, x))

    def render_line(self, y: int) -> Strip:
        base, width = self._base, self.room
        index = y + self.scroll_offset.y - bool(self._head)
        if self._head and y == 0:
            line = self._head
        elif index < self._count:
            line = self._draw(index)
        else:
            return Strip.blank(self.size.width, base)
        emphasis = self.emphasis(index) if not (self._head and y == 0) else ""
        if emphasis == BRIGHT:  # colours would be patches in it
            segments = [Segment(plain(line), base + style_of(BRIGHT))]
            return Strip(segments).adjust_cell_length(width, base + style_of(BRIGHT))
        segments = [Segment(piece.text, base + style_of(f"{piece.style} {emphasis}")) for piece in line if piece.text]
        return Strip(segments).adjust_cell_length(width, base)

    def emphasis(self, _index: int) -> str:
        """A style on top of the others in this line."""
        return ""


class Rows(Lines):
    """Lines of which one is chosen."""

    class Chosen(Message):
        def __init__(self, rows: Rows, index: int) -> None:
            super().__init__()
            self.rows, self.index = rows, index

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
    ]

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - textual's word
        super().__init__(id=id)
        self.chosen = 0

    def choose(self, index: int) -> None:
        """Without a word; it stays in sight only where it was moved by somebody."""
        self.chosen = index

    def action_move(self, by: int) -> None:
        self._go(self.chosen + by)

    def action_page(self, by: int) -> None:
        self._go(self.chosen + by * max(self.size.height - 2, 1))

    def pointed(self, index: int, _x: int) -> None:
        self._go(index)

    def emphasis(self, index: int) -> str:
        if index != self.chosen:
            return ""
        return BRIGHT if self.has_focus else "underline"

    def _go(self, index: int) -> None:
        index = max(min(index, self._count - 1), 0)
        self.chosen = index
        seen = max(self.size.height - bool(self._head), 1)
        if index < self.scroll_offset.y:
            self.scroll_to(y=index, animate=False, immediate=True)
        elif index >= self.scroll_offset.y + seen:
            self.scroll_to(y=index - seen + 1, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Chosen(self, index))
