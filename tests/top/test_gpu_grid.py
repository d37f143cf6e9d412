"""Every GPU is one character that says who has it, without colours too."""

from __future__ import annotations

from optimus.cli.top.gpu_grid import Mark, device_at, drawn, grouped, laid_out, legend, marks
from optimus.cli.top.pieces import plain
from tests.top.pictures import View, job, node, queue, replica

QUEUES = {"vision": Mark("V", "green"), "speech": Mark("S", "blue")}
JOBS = {
    "default/a": job("a", "vision"),
    "default/b": job("b", "speech"),
    "default/leaving": job("leaving", "speech", "Checkpointing"),
    "default/shrinks": job(
        "shrinks", "vision", "Rescaling", replicas=[replica("n", 0), replica("n", 1, state="leaving")]
    ),
}


def lines(nodes: list[View], *, width: int = 80, pools: list[View] | None = None, chosen: str = "") -> list[str]:
    grid = laid_out(grouped(nodes, pools or []), width)
    return [plain(drawn(grid, row, JOBS, QUEUES, chosen)).rstrip() for row in grid.rows]


def test_whole_part_shared_and_free() -> None:
    used = node("n", [1000, 500, 750, 0], [["default/a"], ["default/b"], ["default/a", "default/b"], []])
    assert lines([used]) == ["default  2.25 of 4  A100", "n Vs+·"]


def test_what_leaves_is_marked_all_of_it_or_the_part_that_goes() -> None:
    assert lines([node("n", [1000, 1000], [["default/leaving"]] * 2)])[1] == "n !!"
    assert lines([node("n", [1000, 1000], [["default/shrinks"]] * 2)])[1] == "n V!"


def test_a_gpu_that_is_held_is_not_drawn_as_free_and_is_counted() -> None:
    kept = {"job": "default/a", "devices": [0, 1], "reason": {"code": "HeldFor", "text": "held for default/a"}}
    used = node("n", [1000, 0, 0, 0], [["default/leaving"], [], [], []], held=[kept])
    assert lines([used]) == ["default  1 of 4  A100  1 held", "n !○··"]
    assert all("○ held" in legend(width) for width in (30, 60, 90))


def test_a_node_that_is_not_ready_says_so() -> None:
    away = node("n", [0, 1000], [[], ["default/a"]], ready=False)
    assert lines([away]) == ["default  1 of 2  A100  1 not ready", "n ××"]


def test_the_chosen_job_is_marked() -> None:
    used = node("n", [1000, 500, 1000], [["default/a/3"], ["default/a"], ["default/b"]])
    assert lines([used], chosen="default/a")[1] == "n ◆◇S"


def test_a_job_that_is_not_known_yet_still_has_its_gpu() -> None:
    assert lines([node("n", [1000], [["default/new"]])])[1] == "n +"


def test_nodes_stand_by_pool_and_rack_as_the_scheduler_sorts_them() -> None:
    pools: list[View] = [{"name": "h100", "selector": {"gpu": "h100"}, "levels": ["zone", "rack"]}]
    nodes = [
        node("x", [0], labels={"rack": "r1"}),
        node("y", [0], labels={"gpu": "h100", "zone": "z", "rack": "r2"}),
        node("z", [0], labels={"gpu": "h100", "zone": "z", "rack": "r1"}),
    ]
    heads = [line.partition("  ")[0] for line in lines(nodes, pools=pools) if "of" in line]
    assert heads == ["default / r1", "h100 / z / r1", "h100 / z / r2"]


def test_nodes_stand_beside_each_other_where_there_is_room() -> None:
    nodes = [node(f"node-{number}", [0] * 8) for number in range(4)]
    assert [line.count("node") for line in lines(nodes, width=80)[1:]] == [4]
    assert [line.count("node") for line in lines(nodes, width=40)[1:]] == [2, 2]
    assert [line.count("node") for line in lines(nodes, width=20)[1:]] == [1, 1, 1, 1]


def test_many_gpus_take_several_lines_and_no_line_is_too_wide() -> None:
    for width in (10, 20, 33, 80):
        shown = lines([node("a-node-with-quite-a-long-name-17", [0] * 64)], width=width)[1:]
        assert sum(line.count("·") for line in shown) == 64
        assert all(len(line) <= width for line in shown)
        assert shown[0].partition(" ")[0].endswith("17")


def test_a_node_without_gpus_has_a_name() -> None:
    assert lines([node("cpu-only", [])]) == ["default  0 of 0", "cpu-only"]


def test_letters_are_of_the_name_and_of_one_queue_each() -> None:
    names = ["speech", "sales", "s", "team", "vision"]
    found = marks([queue("team"), *(queue(name, "team") for name in names if name != "team")])
    assert "team" not in found  # jobs are in its children
    letters = {name: mark.letter for name, mark in found.items()}
    assert letters == {"s": "S", "sales": "A", "speech": "P", "vision": "V"}


def test_more_queues_than_letters_share_one() -> None:
    found = marks([queue(f"q{number:02}") for number in range(30)])
    assert [mark.letter for mark in found.values()].count("#") == 4
    assert len({mark.letter for mark in found.values()}) == 27


def test_the_legend_fits() -> None:
    assert "not ready" in legend(80)
    assert all(len(legend(width)) <= width for width in range(90))


def test_what_is_drawn_somewhere_is_found_there() -> None:
    nodes = [node(f"n{number}", [0] * 6) for number in range(3)]
    for width in (12, 30, 80):
        grid = laid_out(grouped(nodes, []), width)
        found = []
        for row in grid.rows:
            line = plain(drawn(grid, row, JOBS, QUEUES, ""))
            places = [device_at(grid, row, x) for x in range(width + 5)]
            assert [bool(row.nodes) and x < len(line) and line[x] == "·" for x in range(width + 5)] == list(
                map(bool, places)
            )
            found += [(place[0]["name"], place[1]) for place in places if place]
        assert sorted(found) == [(f"n{number}", device) for number in range(3) for device in range(6)]
