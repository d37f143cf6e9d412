"""The view without a scheduler: what a story tells is on the screen, and keys ask for the right thing."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from optimus.cli.top.app import Top
from optimus.cli.top.pages import Said
from optimus.cli.top.world import LOST
from optimus.client import Connection
from optimus.client.targets import OneMachine, target_of
from tests.top.pictures import Answers, Story, change, everything, job, node, queue, reports, screen, sees, share

QUEUES = [queue("speech", "", share(2000, 2000), running=1), queue("vision", "", share(2000, 1000), running=1)]
NODES = [node("n0", [1000, 1000, 0, 0], [["default/train"], ["default/talk"], [], []])]
WAITS = job("big", phase="Pending", reason={"code": "NoRoom", "text": "needs 20 GPUs"})
WORLD = everything(job("train"), job("talk", "speech"), WAITS, nodes=NODES, queues=QUEUES)
Tale = Callable[[Top, "Pilot[None]"], Awaitable[None]]


def play(
    tale: Tale,
    *events: tuple[str, Any],
    size: tuple[int, int] = (100, 30),
    asked: Answers | None = None,
    only: str = "",
) -> Top:
    app = Top(Story(*events), target_of(cast("Connection", asked or Answers())), queue=only)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await tale(app, pilot)

    asyncio.run(run())
    return app


def answers(app: Top) -> Answers:
    return cast("Answers", cast("OneMachine", app._target)._asked)


def tells(app: Top, *events: tuple[str, Any]) -> None:
    cast("Story", app._source).untold += events


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 15)])
def test_gpus_queues_and_jobs_are_there_in_every_size(size: tuple[int, int]) -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        shown = await sees(app, pilot, "GPUs 2 of 4 in use", "Queues 2", "Jobs 3", "n0 ", "train", "live")
        assert "needs 20 GPUs" in shown or size[0] < 80

    play(tale, WORLD, size=size)


def test_a_terminal_that_is_resized_is_drawn_anew() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "Jobs 3")
        for size in ((200, 60), (50, 12), (20, 5), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.3)
        shown = await sees(app, pilot, "Jobs 3", "unattended", "needs 20 GPUs")
        assert "Queues" in next(line for line in shown.splitlines() if "GPUs 2 of 4" in line)  # beside each other

    play(tale, WORLD)


def test_the_cursor_stays_with_its_job_when_others_come_and_go() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.press("down")
        await sees(app, pilot, "› train", "n0 ◆S")
        tells(app, change(talk=None, first=job("first", startedMs=1)))
        await sees(app, pilot, "› train", "first")
        tells(app, change(train=None))
        await sees(app, pilot, "Jobs 2")
        assert "›" in screen(app)

    play(tale, WORLD)


def test_words_narrow_and_escape_shows_all_again() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "Jobs 3")
        await pilot.press("slash", *"speech", "enter")
        shown = await sees(app, pilot, "Jobs 1 of 3", "/speech")
        assert "› talk" in shown
        await pilot.press("escape")
        await sees(app, pilot, "Jobs 3 ·")
        await pilot.press("slash", *"[/nobody")
        await sees(app, pilot, "No such jobs")

    play(tale, WORLD)


def test_orders_are_gone_through() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        for order in ("line", "end", "GPUs", "age", "queue", "name", "line"):
            await sees(app, pilot, f"by {order}")
            await pilot.press("o")

    play(tale, WORLD)


def test_enter_on_a_queue_shows_its_jobs_only() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "Jobs 3")
        await pilot.press("shift+tab", "down", "enter")
        await sees(app, pilot, "Jobs 2 of 3", "queue vision")
        await pilot.press("enter")
        await sees(app, pilot, "Jobs 3 ·")

    play(tale, WORLD)


def test_a_click_on_a_gpu_chooses_its_job() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.click("#gpus", offset=(3, 2))
        await sees(app, pilot, "› train", "n0 [0]: default/train", "n0 ◆S")
        await pilot.click("#gpus", offset=(5, 2))
        await sees(app, pilot, "n0 [2]: free", "› train")
        await pilot.click("#gpus", offset=(60, 1))  # nothing is there

    play(tale, WORLD)


def test_a_scheduler_that_does_not_answer_keeps_nobody_from_leaving() -> None:
    asked, let_go = Answers(), threading.Event()
    answered: list[str] = []

    def never(path: str, body: bytes = b"") -> str:
        asked.asked.append(path)
        let_go.wait(10)
        answered.append(path)
        return "at last"

    asked.post = never  # type: ignore[method-assign]
    asked.get = never  # type: ignore[method-assign]

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.press("s")
        await sees(app, pilot, "asked …")
        await pilot.press("d")
        await sees(app, pilot, "describe default/talk", "asked …")
        await pilot.press("ctrl+c")

    play(tale, WORLD, asked=asked)
    assert len(asked.asked) == 2 and not answered  # both still wait
    let_go.set()


def test_a_queue_that_there_is_not_is_said() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "queue nobody: there is none", "Esc shows all")

    play(tale, WORLD, only="nobody")


@pytest.mark.parametrize(
    ("key", "asks"),
    [
        ("s", "POST /v1/jobs/default/talk/suspend"),
        ("r", "POST /v1/jobs/default/talk/resume"),
        ("plus", 'POST /v1/jobs/default/talk/scale{"replicas": 2}'),
        ("minus", 'POST /v1/jobs/default/talk/scale{"replicas": 1}'),
    ],
)
def test_keys_ask_and_the_answer_is_shown(key: str, asks: str) -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.press(key)
        await sees(app, pilot, "talk: done")

    asked = Answers()
    play(tale, WORLD, asked=asked)
    assert asked.asked == [asks]


def test_a_refusal_is_shown() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.press("s")
        await sees(app, pilot, "refused: it is over [sic]")

    play(tale, WORLD, asked=Answers("it is over [sic]"))


def test_cancelling_names_the_job_and_only_yes_is_yes() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        for no in ("n", "escape", "enter"):
            await pilot.press("c")
            await sees(app, pilot, "Cancel default/talk", "Its 1 running replica gets", "y cancel it")
            await pilot.press(no)
            await sees(app, pilot, "Cancel default/talk", gone=True)
        assert answers(app).asked == []
        await pilot.press("c", "y")
        await sees(app, pilot, "talk: done")

    asked = Answers()
    play(tale, WORLD, asked=asked)
    assert asked.asked == ["DELETE /v1/jobs/default/talk"]


def test_the_question_is_about_the_job_it_named_even_if_the_line_has_moved() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.press("c")
        await sees(app, pilot, "Cancel default/talk")
        tells(app, change(talk=None))
        await pilot.pause(0.5)
        await pilot.press("y")
        await sees(app, pilot, "talk: done")

    asked = Answers()
    play(tale, WORLD, asked=asked)
    assert asked.asked == ["DELETE /v1/jobs/default/talk"]


def test_describe_is_told_anew_when_the_job_changes_and_stays_when_it_is_gone() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk")
        await pilot.press("enter")
        await sees(app, pilot, "describe default/talk", "command")
        asked = answers(app).asked
        before = len(asked)
        tells(app, change(talk=job("talk", "speech", progress=reports(1, 2))))
        while len(asked) == before:
            await pilot.pause(0.05)
        answers(app)._refusal = "there is no job default/talk"
        tells(app, change(talk=None))
        await sees(app, pilot, "there is no job default/talk", "command")
        await pilot.press("escape")
        await sees(app, pilot, "Jobs 2")

    play(tale, WORLD)


def test_a_page_that_is_left_while_it_is_told_something_stays_quiet() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "Jobs 3")
        page = Said("explain train", [sys.executable, "-c", "print('why')"], follow=False)
        app.push_screen(page)
        await sees(app, pilot, "explain train", "why")
        page.action_back()
        for _ in range(200):  # its command ends in the same moment, whichever of them that is
            page._fresh = True
            page._draw()
            await asyncio.sleep(0)
        await sees(app, pilot, "Jobs 3")

    play(tale, WORLD)


def test_when_nobody_answers_it_says_since_when_and_keeps_what_was() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "live")
        tells(app, (LOST, "nobody answers at http://story"))
        await sees(app, pilot, "no answer since", "trying again", "nobody answers at http://story", "› talk")
        tells(app, (LOST, "still nobody"))
        await sees(app, pilot, "still nobody")
        tells(app, everything(job("new")))
        await sees(app, pilot, "live", "› new", "Jobs 1")

    play(tale, WORLD)


def test_before_anybody_answers_it_says_what_to_do() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "optimus up")
        for key in ("e", "l", "s", "c", "enter", "down", "G", "tab", "o", "question_mark"):
            await pilot.press(key)
        await sees(app, pilot, "quit; jobs go on")

    play(tale)


def test_trouble_of_the_scheduler_is_at_the_top() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "trouble: the disk is full")

    play(tale, everything(job("train"), trouble="the disk is full"))


def test_strange_names_and_texts_are_only_text() -> None:
    strange = job("日本語" * 40, phase="Pending", reason={"code": "X", "text": "[bold]\x1b[2Jé [/] [@click=quit]x"})

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        shown = await sees(app, pilot, "日本", "Jobs 1")
        assert "[bold]" in shown and "\x1b" not in shown
        await pilot.press("c")
        await sees(app, pilot, "default/日本語", "y cancel it")

    play(tale, everything(strange, queues=[queue("vision[x]")]))


def test_only_what_is_seen_of_thousands_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from optimus.cli.top import gpu_grid, job_rows

    drawn = {"jobs": 0, "nodes": 0}
    draw_job, draw_row = job_rows.drawn, gpu_grid.drawn

    def count_job(*words: Any, **named: Any) -> Any:
        drawn["jobs"] += 1
        return draw_job(*words, **named)

    def count_row(*words: Any) -> Any:
        drawn["nodes"] += 1
        return draw_row(*words)

    monkeypatch.setattr(job_rows, "drawn", count_job)
    monkeypatch.setattr(gpu_grid, "drawn", count_row)
    many = everything(*(job(f"j{at:04}") for at in range(3000)), nodes=[node(f"n{at}", [0] * 8) for at in range(400)])

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "Jobs 3000", "j0000")
        drawn.update(jobs=0, nodes=0)
        app._draw()
        await pilot.pause()
        assert 0 < drawn["jobs"] < 100 and 0 < drawn["nodes"] < 100
        await pilot.press("end")
        await sees(app, pilot, "› j2999")
        await pilot.press("home", "pagedown")
        await sees(app, pilot, "› j00")

    play(tale, many)


def test_without_colours_nothing_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "› talk", "n0 V◆")
        strips = [app.screen._compositor.render_strips()[at] for at in range(29)]
        filtered = [
            strip.apply_filter(one, app.background_colors[0]) for strip in strips for one in app._filters if one.enabled
        ]
        colours = {s.style.color.name for strip in filtered for s in strip if s.style and s.style.color}
        assert colours <= {"default"}

    play(tale, WORLD)


def test_the_stream_is_left_with_the_view() -> None:
    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("q")

    assert cast("Story", play(tale, WORLD)._source).stopped
