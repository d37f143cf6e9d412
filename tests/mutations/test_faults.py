"""The invariants and stories can fail: deliberate faults in the decision core are noticed.

Here a few of them, always the same; all of them with `python -m tests.mutations` (part of `make soak`).
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from optimus.testing import INVARIANTS
from tests.mutations.fault import Fault
from tests.mutations.faults import FAULTS
from tests.mutations.run import run, sample
from tests.mutations.running import ROOT

SAMPLE = 6
LEAST_FAULTS = 32


def source(fault: Fault) -> str:
    return (ROOT / "src" / "optimus" / fault.file).read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_text_of_a_fault_still_occurs_exactly_once(fault: Fault) -> None:
    assert source(fault).count(fault.old) == 1, f"{fault.file} has changed: bring the fault in line, or replace it"
    assert fault.old != fault.new


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_valid_python(fault: Fault) -> None:
    ast.parse(fault.applied(source(fault)))


def test_faults_have_names_of_their_own() -> None:
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_there_are_faults_for_every_invariant() -> None:
    assert len(FAULTS) >= LEAST_FAULTS
    expected = {fault.caught_by for fault in FAULTS}
    assert [number for number in INVARIANTS if f"invariant {number}" not in expected] == []


def test_what_should_catch_a_fault_is_there() -> None:
    for fault in FAULTS:
        if not fault.caught_by.startswith("invariant "):
            folder = "tests/scenarios" if fault.caught_by.endswith(".yaml") else ""
            assert (ROOT / folder / fault.caught_by).exists(), fault.caught_by


def test_a_fault_whose_text_is_gone_says_so() -> None:
    fault = Fault("gone", "decide/quotas.py", "no such text", "", "", "invariant 1")
    with pytest.raises(ValueError, match=r"occurs 0 times in decide/quotas.py"):
        fault.applied(source(fault))


@pytest.mark.slow
def test_a_sample_of_faults_is_caught() -> None:
    survivors = [verdict.name for verdict in run(sample(SAMPLE)) if not verdict.caught]
    assert survivors == []
