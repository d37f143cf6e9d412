"""`optimus top` over a real cluster: what it shows is the cluster, and keys do to its jobs what commands do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from textual.pilot import Pilot

from hack.controlplane import ControlPlane, missing_toolchain
from optimus.cli.top.app import Top
from optimus.cli.top.watching import Changes
from tests.kube.body.clusters import until
from tests.kube.cli.conftest import Town
from tests.top.pictures import screen, sees

SIZE = (160, 40)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One of its own: all that is there is seen, also what other stories have left."""
    if why := missing_toolchain():
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("plane"), controllers=True, kwok=True) as started:
        yield started


def test_a_cluster_is_watched_and_its_jobs_are_steered(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in town.environment().items():  # of this process, and of commands that the view starts
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KUBECONFIG", str(town.plane.kubeconfig()))
    target = town.target()
    source = Changes(target)
    app = Top(source, target)
    first = f"{town.namespace}/job/first"

    async def tale(app: Top, pilot: Pilot[None]) -> None:
        await sees(app, pilot, "No jobs", "0 of 8", "live", town.queue)
        await asyncio.to_thread(town.job, "first", 4)
        await sees(app, pilot, "job/first", "Running", "GPUs 4 of 8 in use")
        await asyncio.to_thread(town.job, "second", 4)
        await sees(app, pilot, "job/second", "Pending", "Jobs 2")
        app._job = first
        (node,) = [one for one in app.world.nodes if one["name"] == town.mine()[0]]
        assert node["jobs"][0] == [first]
        await pilot.click("#gpus", offset=_device(app, town.mine()[0]))
        await sees(app, pilot, f"[0]: {first}")
        assert app._chosen_job() == first, "whose GPU it is: its job is chosen"

        app._job = f"{town.namespace}/job/second"
        await pilot.press("e")
        await sees(app, pilot, "explain", "job/second", "limit of 6", "What would start it now")
        await pilot.press("escape")
        app._job = first
        await pilot.press("enter")
        await sees(app, pilot, f"describe {first}", "python train.py")
        await pilot.press("escape")
        await pilot.press("s")
        await sees(app, pilot, f"{first}: suspended")
        await sees(app, pilot, "Suspended")
        await asyncio.to_thread(until, lambda: town.view("second")["phase"] == "Running", "it gets the room")
        await sees(app, pilot, "GPUs 4 of 8 in use")
        app._job = f"{town.namespace}/job/second"
        await pilot.press("c", "y")
        await sees(app, pilot, "GPUs 0 of 8 in use", "Jobs 1")
        assert "job/second" not in screen(app).split("Jobs 1")[1].splitlines()[1]
        await pilot.press("l")
        await sees(app, pilot, f"logs of {app._job}")
        await pilot.press("escape")

    async def run() -> None:
        async with app.run_test(size=SIZE) as pilot:
            await tale(app, pilot)

    asyncio.run(run())


def _device(app: Top, node: str) -> tuple[int, int]:
    """Where the first device of a node is drawn, below the title."""
    grid = app._grid
    line = next(index for index, row in enumerate(grid.rows) if any(one["name"] == node for one in row.nodes))
    return grid.name_width + 1, 1 + line
