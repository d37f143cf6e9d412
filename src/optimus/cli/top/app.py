"""The view: three panes over one world, and keys that do what commands do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.css.query import NoMatches
from textual.events import Resize
from textual.widgets import Footer, Input, Static

from optimus.cli.job_tables import gpus, name
from optimus.cli.top import gpu_grid, job_rows, keys, queue_rows, reports
from optimus.cli.top.asking import in_background
from optimus.cli.top.pages import Described, Keys, Question, Said
from optimus.cli.top.panes import Lines, Rows
from optimus.cli.top.pieces import Line, cut
from optimus.cli.top.rooms import rooms_for
from optimus.cli.top.watching import Source
from optimus.cli.top.world import View, World
from optimus.client import JobError
from optimus.client.targets import Target

BETWEEN_S = 0.2
"""What comes within this time is drawn together."""
LEAST_WITH_LEGEND = 5
REMEMBERED_S = 8.0
"""For so long an answer is shown."""


class Filter(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.keep_filter", show=False, priority=True),
        Binding("escape", "app.everything", show=False, priority=True),
    ]


class Top(App[None]):
    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,d", "describe", "Describe", key_display="d"),
        Binding("e", "explain", "Explain"),
        Binding("l", "logs", "Logs"),
        Binding("s", "suspend", "Suspend"),
        Binding("r", "resume", "Resume"),
        Binding("c", "cancel", "Cancel"),
        Binding("plus,equals_sign", "scale(1)", show=False),
        Binding("minus", "scale(-1)", show=False),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("o", "order", show=False),
        Binding("question_mark", "keys", "Keys", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("escape", "everything", show=False),
    ]

    def __init__(self, source: Source, target: Target, *, queue: str = "", address: str = "") -> None:
        super().__init__(ansi_color=True)  # the terminal's own colours, be it light or dark
        self.theme = "ansi-dark"
        self._source = source
        self._target = target
        self._address = address
        """Of commands that are started from here, if it was given."""
        self.world = World()
        self._only = queue
        self._order = next(iter(job_rows.ORDERS))
        self._words = ""
        self._job = ""
        """The one that is chosen, wherever it moves to."""
        self._shown: list[str] = []
        self._queue_names: list[str] = []
        self._answer, self._answer_s = "", 0.0
        self._grid = gpu_grid.laid_out([], 1)
        self._queues_width = 0
        self._drawn_s = 0.0

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        with Container(id="above"):
            yield Lines("gpus")
            yield Rows("queues")
        yield Rows("jobs")
        yield Filter(placeholder="words of a name, queue, phase or class; Enter keeps it, Esc ends it", id="filter")
        yield Static(id="word", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#filter").display = False
        self.query_one("#jobs").focus()
        self._source.start()
        self.set_interval(BETWEEN_S, self._look)
        self._draw()

    def on_unmount(self) -> None:
        self._source.stop()

    # -- what is known --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """What has come since the last look; and once a second the time goes on."""
        if not self.screen_stack:  # it is going away
            return
        now_s = time.monotonic()
        news = self._source.news()
        for event, told in news:
            self.world.take(event, told, now_s)
        if news or now_s - self._drawn_s >= 1.0:
            self._draw()
        if isinstance(self.screen, Described) and any(
            self.screen.job in (told.get("jobs") or {}) for told in _changes(news)
        ):
            self.screen.changed()

    def _draw(self) -> None:
        try:
            head, word = (self.screen_stack[0].query_one(name, Static) for name in ("#head", "#word"))
        except (NoMatches, IndexError):  # it is going away
            return
        self._drawn_s = now_s = time.monotonic()
        now_ms = time.time_ns() // 1_000_000
        self._draw_jobs(now_ms)
        self._draw_queues()
        self._draw_gpus()
        self._make_room()
        head.update(keys.head(self.world, self._target.address, now_s, self.size.width))
        word.update(cut(self._said(now_s), self.size.width))

    def _draw_jobs(self, now_ms: int) -> None:
        world, pane = self.world, self._pane("jobs", Rows)
        queues = queue_rows.descendants(world.queues, self._only) if self._only else None
        before = pane.chosen
        self._shown = shown = job_rows.chosen(
            world.jobs, order=self._order, words=self._words, queues=queues, now_ms=now_ms
        )
        place = {job: index for index, job in enumerate(shown)}
        pane.choose(place.get(self._job, max(min(before, len(shown) - 1), 0)))
        self._job = shown[pane.chosen] if shown else ""
        marks = gpu_grid.marks(world.queues)
        columns = job_rows.columns_for(
            pane.room,
            names=max((len(name(view)) for view in world.jobs.values()), default=0),
            queues=max((len(queue["name"]) for queue in world.queues), default=0),
        )

        def draw(index: int) -> Line:
            view = world.jobs[shown[index]]
            mark = marks.get(view["queue"])
            style = mark.colour if mark else ""
            return job_rows.drawn(view, columns, now_ms, style, is_chosen=index == pane.chosen)

        if shown:
            pane.show(len(shown), draw, job_rows.header(columns))
        else:
            hint = keys.no_jobs(world, self._words, self._only)
            pane.choose(-1)
            pane.show(1, lambda _: hint)
        pane.border_title = keys.jobs_title(world, len(shown), self._order, self._words, self._only, queues)

    def _draw_queues(self) -> None:
        world, pane = self.world, self._pane("queues", Rows)
        rows = queue_rows.queue_rows(world.queues, world.nodes, world.pools)
        columns = queue_rows.columns_for(rows, pane.room)
        marks = gpu_grid.marks(world.queues)
        self._queue_names = [row.name for row in rows]
        pane.choose(min(pane.chosen, max(len(rows) - 1, 0)))
        pane.show(len(rows), lambda index: queue_rows.drawn(rows[index], columns, marks), queue_rows.header(columns))
        pane.border_title = f" Queues {len(world.queues)} "
        self._queues_width = queue_rows.natural_width(rows)

    def _draw_gpus(self) -> None:
        world, pane = self.world, self._pane("gpus", Lines)
        self._grid = grid = gpu_grid.laid_out(gpu_grid.grouped(world.nodes, world.pools), max(pane.room, 1))
        marks = gpu_grid.marks(world.queues)
        chosen = self._job if self._pane("jobs", Rows).has_focus else ""
        pane.show(len(grid.rows), lambda index: gpu_grid.drawn(grid, grid.rows[index], world.jobs, marks, chosen))
        used, there = gpu_grid.in_use(world.nodes)
        pane.border_title = f" GPUs {gpus(used)} of {there} in use "
        pane.border_subtitle = gpu_grid.legend(pane.room)

    def _make_room(self) -> None:
        grid, queues = self._pane("gpus", Lines), self._pane("queues", Rows)
        rooms = rooms_for(self.size.width, self.size.height, grid.virtual_size.height, queues.virtual_size.height)
        above = self.screen_stack[0].query_one("#above")
        above.set_class(rooms.beside, "beside")
        grid.set_class(rooms.gpus < LEAST_WITH_LEGEND, "bare")
        for pane, lines in ((grid, rooms.gpus), (queues, rooms.queues)):
            if pane.styles.height is None or pane.styles.height.value != lines:
                pane.styles.height = lines
        width = min(self._queues_width + 3, self.size.width * 58 // 100) if rooms.beside else self.size.width
        if queues.styles.width is None or queues.styles.width.value != width:
            queues.styles.width = width

    def _pane(self, name: str, kind: type[Lines]) -> Any:
        return self.screen_stack[0].query_one(f"#{name}", kind)

    def _said(self, now_s: float) -> str:
        """The answer to the last key; after a while, what the line of the chosen job had no room for."""
        if self.world.lost:
            return self.world.lost
        if self._answer and now_s - self._answer_s < REMEMBERED_S:
            return self._answer
        view = self.world.jobs.get(self._job)
        return job_rows.in_full(view) if view is not None else ""

    def _say(self, text: str) -> None:
        self._answer, self._answer_s = text, time.monotonic()
        self._draw()

    # -- what happens here ----------------------------------------------------------------------------------------

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows.id == "jobs" and event.index < len(self._shown):
            self._job, self._answer = self._shown[event.index], ""
            self._draw()

    def on_lines_pointed(self, event: Lines.Pointed) -> None:
        """Whose GPU it is: the job is chosen."""
        found = gpu_grid.device_at(self._grid, self._grid.rows[event.index], event.x)
        if event.lines.id != "gpus" or found is None:
            return
        node, device = found
        jobs = [gpu_grid.job_of(workload, self.world.jobs) for workload in node["jobs"][device]]
        if not jobs:
            kept = [one for one in node.get("held") or () if device in one["devices"]]
            self._job = gpu_grid.job_of(kept[0]["job"], self.world.jobs) if kept else self._job
            self._say(f"{node['name']} [{device}]: {kept[0]['reason']['text'] if kept else 'free'}")
            return
        after = (jobs.index(self._job) + 1) % len(jobs) if self._job in jobs else 0  # of several, one after the other
        self._job = jobs[after]
        self._pane("jobs", Rows).focus()
        self._say(f"{node['name']} [{device}]: {', '.join(jobs)}")

    def on_descendant_focus(self) -> None:
        self._draw()

    def on_resize(self, _event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_lines_resized(self) -> None:
        self._draw()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._words = event.value
        self._draw()

    def action_keep_filter(self) -> None:
        """At once, so that the next key is not taken for another letter of it."""
        self.query_one("#filter").display = False
        self.screen.set_focus(self.query_one("#jobs"))

    # -- keys -----------------------------------------------------------------------------------------------------

    def action_describe(self) -> None:
        if self.focused is not None and self.focused.id == "queues":
            self._only_chosen_queue()
        elif job := self._chosen_job():
            self.push_screen(Described(self._target, job))

    def action_explain(self) -> None:
        if job := self._chosen_job():
            words = reports.command("explain", "job", job, address=self._address)
            self.push_screen(Said(f"explain {job}", words, follow=False))

    def action_logs(self) -> None:
        if job := self._chosen_job():
            words = reports.command("logs", "job", job, "--follow", "--tail", "1000", address=self._address)
            self.push_screen(Said(f"logs of {job}", words, follow=True))

    def action_suspend(self) -> None:
        if job := self._chosen_job():
            self._ask(lambda: self._target.suspend(job))

    def action_resume(self) -> None:
        if job := self._chosen_job():
            self._ask(lambda: self._target.resume(job))

    def action_scale(self, by: int) -> None:
        if job := self._chosen_job():
            replicas = keys.next_size(self.world.jobs[job], by)
            self._ask(lambda: self._target.scale(job, replicas))

    def action_cancel(self) -> None:
        if job := self._chosen_job():
            question = Question(keys.before_cancelling(job, self.world.jobs[job]), "cancel it", "keep it")
            self.push_screen(question, lambda yes: self._cancel(job) if yes else None)

    def _cancel(self, job: str) -> None:
        self._ask(lambda: self._target.cancel(job))

    def action_filter(self) -> None:
        field = self.query_one("#filter")
        field.display = True
        self.screen.set_focus(field)

    def action_everything(self) -> None:
        """No filter, all queues."""
        field = self.query_one("#filter", Input)
        field.value = self._words = self._only = ""
        self.action_keep_filter()
        self._draw()

    def action_order(self) -> None:
        names = list(job_rows.ORDERS)
        self._order = names[(names.index(self._order) + 1) % len(names)]
        self._draw()

    def action_keys(self) -> None:
        self.push_screen(Keys(keys.page()))

    def _only_chosen_queue(self) -> None:
        rows: Rows = self._pane("queues", Rows)
        names = [name for name in self._queue_names[: rows.chosen + 1] if name]  # of several pools, the first is named
        self._only = names[-1] if names and names[-1] != self._only else ""
        self._draw()

    def _chosen_job(self) -> str:
        if self._job not in self.world.jobs:
            self._say("no job is chosen")
            return ""
        return self._job

    def _ask(self, ask: Callable[[], Any]) -> None:
        """What the scheduler answers is shown, also when it is a refusal."""

        def answer() -> str:
            try:
                return str(ask())
            except JobError as error:
                return f"refused: {error}"

        self._say("asked …")
        in_background(answer, self._say)


def _changes(news: list[tuple[str, Any]]) -> list[View]:
    return [told for event, told in news if event in ("everything", "change")]
