"""Finding a policy by name, entry point or file; and saying clearly why not."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optimus.decide import policies
from optimus.decide.policies import DEFAULT, WorkloadColumns, fill
from optimus.engine import policy_loading
from optimus.engine.policy_loading import PolicyError, check, load

GUIDE = Path(__file__).parents[2] / "docs/guides/write-a-policy.md"

FILE = '''
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from optimus.decide.policies import Policy

def smallest_first(columns):
    """Small gangs first.

    More about it."""
    return columns.size_milli

whole = Policy(name="whole", doc="all mine", order=smallest_first, victim_cost=lambda c: c.size_milli)
two_arguments = lambda columns, seed: columns.size_milli
wrong_part = Policy(name="wrong-part", growth=lambda: 0)
ANSWER = 42

class Order:
    def __call__(self, columns):
        return columns.size_milli

instance = Order()

async def later(columns):
    return columns.size_milli

def one_by_one(columns):
    yield 1

def nothing():
    return 0

@dataclass
class Data:
    x: int = 0
'''


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    return tmp_path


def entry_points(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [
        EntryPoint(name.replace("_", "-"), value, policy_loading.ENTRY_POINT_GROUP) for name, value in values.items()
    ]
    monkeypatch.setattr(policy_loading, "entry_points", lambda group: EntryPoints(points).select(group=group))


def test_a_built_in_name() -> None:
    assert load("default") is DEFAULT
    assert all(load(name) is policies.get(name) for name in policies.names())


def test_an_order_function_in_a_file(directory: Path) -> None:
    policy = load("mine.py:smallest_first")
    assert (policy.name, policy.doc) == ("mine.py:smallest_first", "Small gangs first.")
    assert (policy.growth, policy.victim_cost) == (DEFAULT.growth, DEFAULT.victim_cost)
    keys, condition = policies.order_keys(policy, fill(WorkloadColumns, 2, size_milli=[8000, 500]))
    assert (keys.tolist(), condition) == ([1, 0], None)
    assert load(f"{directory}/mine.py:smallest_first").order(fill(WorkloadColumns, 0)).tolist() == []


def test_a_whole_policy_or_a_callable_object_in_a_file(directory: Path) -> None:
    assert load("mine.py:whole").doc == "all mine"
    assert load("mine.py:instance").name == "mine.py:instance"


def test_an_edit_counts_at_once(directory: Path) -> None:
    for sign, expected in (("", [0, 1]), ("-", [1, 0])):
        Path("edited.py").write_text(f"def order(columns):\n    return {sign}columns.submitted_ms\n")
        keys, _ = policies.order_keys(load("edited.py:order"), fill(WorkloadColumns, 2, submitted_ms=[1, 2]))
        assert keys.tolist() == expected


def test_a_file_is_compiled_by_its_own_rules(directory: Path) -> None:
    Path("typed.py").write_text("def order(columns: int):\n    return columns\n")
    assert load("typed.py:order").order.__annotations__ == {"columns": int}


def test_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points(monkeypatch, acme="optimus.decide.policies.orders:deadline", fifo="nowhere:nothing")
    assert load("acme").name == "acme"
    assert load("fifo") is policies.get("fifo")  # a built-in name cannot be taken over


def test_an_entry_point_that_ends_the_process_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("leaving.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(directory)
    entry_points(monkeypatch, acme="leaving:order")
    with pytest.raises(PolicyError, match=r"policy acme \(leaving:order.* cannot be imported: SystemExit: 3"):
        load("acme")


def test_an_entry_point_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points(monkeypatch, acme="no_such_module:order")
    with pytest.raises(
        PolicyError, match=r"policy acme \(no_such_module:order.* cannot be imported: ModuleNotFoundError"
    ):
        load("acme")


BAD_FILES = {
    "syntax.py": "def order(columns):\n    return (columns\n",
    "crash.py": "import numpy\n\n1 / 0\n",
    "missing_module.py": "import no_such_module_at_all\n",
    "leaves.py": "import sys\nsys.exit(3)\n",
    "empty.py": "",
    "zero.py": "a = 1\0\n",
}

ERRORS = {
    "defualt": "there is no policy 'defualt'; did you mean default? Known are: deadline, default, fair-share-only",
    "xyz": "there is no policy 'xyz'; known are: deadline, default",
    "": "there is no policy ''; known are: deadline",
    "gone.py:order": "gone.py does not exist (looked in ",
    "folder.py:order": "folder.py is a directory",
    "mine.py": "mine.py names a file; say which policy in it: mine.py:NAME; known are: smallest_first, whole",
    "mine.py:": "mine.py: does not say which policy: mine.py:NAME; known are: smallest_first",
    "gone.py": "gone.py does not exist",
    "empty.py:order": "empty.py has no order; it defines no function",
    "mine.py:smalest_first": "mine.py has no smalest_first; did you mean smallest_first? Known are: smallest",
    "mine.py:ANSWER": "mine.py:ANSWER is int, not a function: an order takes one argument, the columns",
    "mine.py:Order": "mine.py:Order is a class; give a function or a Policy object",
    "mine.py:np": "mine.py:np is module, not a function",
    "mine.py:two_arguments": "mine.py:two_arguments has the wrong signature (columns, seed): missing a required",
    "mine.py:nothing": "mine.py:nothing has the wrong signature (): too many positional arguments",
    "mine.py:wrong_part": "mine.py:wrong_part: growth has the wrong signature ()",
    "mine.py:later": "mine.py:later is async or a generator",
    "mine.py:one_by_one": "mine.py:one_by_one is async or a generator",
    "syntax.py:order": "syntax.py, line 2: '(' was never closed; correct the file",
    "crash.py:order": "crash.py, line 3: ZeroDivisionError: division by zero; correct the file",
    "missing_module.py:order": "missing_module.py, line 1: ModuleNotFoundError: No module named 'no_such_m",
    "leaves.py:order": "leaves.py, line 2: SystemExit: 3",
    "zero.py:order": "zero.py",
}


@pytest.mark.parametrize("reference", ERRORS)
def test_a_mistake_is_said_with_what_to_do(reference: str, directory: Path) -> None:
    Path("folder.py").mkdir()
    for name, text in BAD_FILES.items():
        Path(name).write_text(text)
    with pytest.raises(PolicyError) as caught:
        load(reference)
    assert ERRORS[reference] in str(caught.value)


def test_a_check_finds_what_would_fall_back_in_every_cycle() -> None:
    assert check(DEFAULT) == ()

    def misspelt(columns: Any) -> Any:
        return columns.submited_ms

    policy = policies.Policy(name="typo", order=misspelt, growth=lambda _steps: np.zeros(1))
    messages = [condition.message for condition in check(policy)]
    assert any("has no attribute 'submited_ms'" in message for message in messages)
    assert any("returned 1 values for 3 rows" in message for message in messages)


def test_the_policy_of_the_guide_works_and_has_ten_lines(tmp_path: Path) -> None:
    code = GUIDE.read_text().split("```python\n")[1].split("```")[0]
    assert len(code.strip().splitlines()) <= 10
    (tmp_path / "my_policy.py").write_text(code)
    policy = load(f"{tmp_path}/my_policy.py:notebooks_first")
    assert check(policy) == ()


def test_the_guide_names_every_column_and_every_policy() -> None:
    text = GUIDE.read_text()
    kinds = (WorkloadColumns, policies.ElasticColumns, policies.VictimColumns, policies.NodeColumns)
    wanted = [field for kind in kinds for field in kind.__dataclass_fields__] + list(policies.names())
    assert [name for name in wanted if f"`{name}`" not in text] == []
