"""Rivals as real processes, frozen, killed and cut off: at most one leads, and what lands late is known."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hack.controlplane import ControlPlane
from optimus.kube import Client, Election, Meta, Times
from optimus.kube.resources import LEASES
from tests.kube.client.rival import LEASE
from tests.kube.client.rivalry import stage
from tests.kube.client.world import cluster_of, make_namespace, until

QUICK = Times(lease_s=3, renew_s=2.0, retry_s=0.2)


async def test_a_killed_leader_is_followed_once_its_lease_has_run_out(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    async with stage(plane, namespace_name, tmp_path) as played:
        first = played.enter("first")
        await played.leads("first")
        played.enter("second")
        await asyncio.sleep(1.0)
        first.kill()
        await played.leads("second")
        assert played.audit.leaders() == [("first", 0), ("second", 1)]


async def test_a_frozen_leader_that_wakes_up_after_its_time_writes_nothing(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    async with stage(plane, namespace_name, tmp_path) as played:
        first = played.enter("first")
        await played.leads("first")
        second = played.enter("second")
        first.pause()
        await played.leads("second")
        written = played.audit.by("first")
        first.go_on()
        for _ in range(5):
            await played.leads("second")
        # At most the one that was on its way; in which moment it was frozen is not ours to choose here.
        late = played.audit.by("first") - written
        assert late <= 1
        assert second.alive and first.alive
        second.kill()
        await played.leads("first")  # it is a rival again, and may lead again
        assert played.audit.leaders()[-1] == ("first", 2)


async def test_the_one_write_that_can_land_late_is_known_by_its_term(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    """Frozen at the worst moment: the guard has said yes, the request has not left. With its usual time-out it would be
    given up while it is being sent, and land only sometimes."""
    async with stage(plane, namespace_name, tmp_path) as played:
        first = played.enter("first", "--freeze-at", "5", "--timeout", "600")
        await until(lambda: played.audit.by("first") == 4)
        played.enter("second")
        await played.leads("second")
        assert played.audit.by("first") == 4
        first.go_on()
        await until(lambda: played.audit.by("first") == 5)
        assert played.audit.last_of("first")[:3] == ("first", 5, 0), "it says that it belongs to a term that is over"
        for _ in range(5):
            await played.leads("second")
        assert played.audit.by("first") == 5, "one, and no more"


async def test_a_late_write_that_names_the_version_it_means_is_refused(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    async with stage(plane, namespace_name, tmp_path) as played:
        first = played.enter("first", "--fenced", "--freeze-at", "5", "--timeout", "600")
        await until(lambda: played.audit.by("first") == 4)
        played.enter("second", "--fenced")
        await played.leads("second")
        first.go_on()
        for _ in range(5):
            await played.leads("second")
        assert played.audit.by("first") == 4
        turns = [
            who
            for index, (who, _) in enumerate(played.audit.shared)
            if index == 0 or played.audit.shared[index - 1][0] != who
        ]
        assert turns == ["nobody", "first", "second"], "what all share was never touched by the one who came late"


async def test_who_leaves_in_order_is_followed_at_once(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    """With a lease of ten minutes nobody would follow before this story has lost its patience."""
    long = ("--lease", "600", "--renew", "500")
    async with stage(plane, namespace_name, tmp_path) as played:
        first = played.enter("first", *long)
        await played.leads("first")
        played.enter("second", *long)
        await asyncio.sleep(1.0)
        first.stop()
        await played.leads("second")
        assert played.audit.leaders() == [("first", 0), ("second", 1)]


async def test_clocks_that_are_wrong_by_years_change_nothing(
    plane: ControlPlane, namespace_name: str, tmp_path: Path
) -> None:
    years = str(-50 * 365 * 86_400)
    async with stage(plane, namespace_name, tmp_path) as played:
        played.enter("first", "--clock-off", years)
        await played.leads("first")
        played.enter("second")
        for _ in range(60):
            await played.leads("first")
        assert played.audit.leaders() == [("first", 0)], "a lease that says 1976 is as good as any"


async def test_while_the_server_is_away_nobody_leads_for_longer_than_can_be_proven(
    tmp_path: Path, namespace_name: str
) -> None:
    with ControlPlane(tmp_path / "plane") as fragile:
        async with stage(fragile, namespace_name, tmp_path) as played:
            for name in ("first", "second"):
                played.enter(name)
            await until(lambda: len(played.audit.writes) > 10)
            fragile.api_server.kill()
            fragile.start_again(fragile.api_server)
            before = len(played.audit.writes)
            await until(lambda: len(played.audit.writes) > before + 10)
            order = played.audit.leaders()
            assert [term for _, term in order] == list(range(len(order))), (
                f"one leader a term, one after the other: {order}"
            )


# -- one process -----------------------------------------------------------------------------------------------------


class Lease(msgspec.Struct):
    metadata: Meta
    spec: dict[str, Any]


async def lease(client: Client, namespace: str) -> Lease:
    return await client.get(LEASES, LEASE, Lease, namespace=namespace)


async def test_a_loop_that_is_busy_keeps_the_lead_and_one_that_hangs_loses_it(
    plane: ControlPlane, namespace_name: str
) -> None:
    cluster = cluster_of(plane)
    told: list[int | None] = []
    async with Client(cluster) as client:
        namespace = await make_namespace(client, namespace_name)
        with Election(cluster, LEASE, namespace=namespace, times=QUICK, patience_s=4.5, told=told.append) as election:
            await until(election.still_leader)
            end = time.monotonic() + 3.5
            while time.monotonic() < end:  # longer than a lease lasts, without a single turn for the event loop
                sum(range(1_000))
            assert election.still_leader()
            assert told == [0]
            election.alive()
            await until(lambda: told == [0, None])
            assert not election.still_leader()
            assert election.term is None
            election.alive()
            await until(lambda: told == [0, None, 1])
        assert told == [0, None, 1, None]
        assert "holderIdentity" not in (await lease(client, namespace)).spec, "given back"


async def test_what_others_put_on_the_lease_stays_and_a_deleted_one_comes_back(
    plane: ControlPlane, namespace_name: str
) -> None:
    cluster = cluster_of(plane)
    told: list[int | None] = []
    async with Client(cluster) as client:
        namespace = await make_namespace(client, namespace_name)
        with Election(cluster, LEASE, namespace=namespace, identity="me", times=QUICK, told=told.append) as election:
            await until(election.still_leader)
            await client.patch(LEASES, LEASE, b'{"metadata":{"labels":{"a":"b"}}}', namespace=namespace)
            version = (await lease(client, namespace)).metadata.resource_version
            while (await lease(client, namespace)).metadata.resource_version == version:
                await asyncio.sleep(0.05)
            found = await client.listing(LEASES, Lease, namespace=namespace, labels="a=b")
            assert [one.spec["holderIdentity"] for one in found.items] == [election.identity]
            await client.delete(LEASES, LEASE, namespace=namespace)
            with Election(cluster, LEASE, namespace=namespace, identity="rival", times=QUICK) as rival:
                while not (await client.listing(LEASES, Lease, namespace=namespace)).items:
                    await asyncio.sleep(0.02)
                await until(lambda: election.still_leader() != rival.still_leader())
            assert told[0] == 0


async def test_somebody_else_in_the_lease_ends_the_lead(plane: ControlPlane, namespace_name: str) -> None:
    cluster = cluster_of(plane)
    async with Client(cluster) as client:
        namespace = await make_namespace(client, namespace_name)
        with Election(cluster, LEASE, namespace=namespace, times=QUICK) as election:
            await until(election.still_leader)
            await client.patch(LEASES, LEASE, b'{"spec":{"holderIdentity":"usurper"}}', namespace=namespace)
            await until(lambda: not election.still_leader())
            assert election.holder() == "usurper"


def test_two_of_one_name_are_still_two(plane: ControlPlane) -> None:
    names = {Election(cluster_of(plane), LEASE, identity="pod-0").identity for _ in range(2)}
    assert len(names) == 2


async def test_without_rights_nobody_leads_and_the_reason_is_told(plane: ControlPlane) -> None:
    with Election(cluster_of(plane, "alice"), LEASE, namespace="default", times=QUICK) as election:
        await until(lambda: "leases" in election.trouble)
        assert not election.still_leader()


@pytest.mark.parametrize("times", [(3, 3.0, 1.0), (3, 2.0, 2.0), (3, 2.0, 0.0)])
def test_times_that_would_allow_two_leaders_are_refused(times: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="must hold"):
        Times(*times)


async def test_a_lease_that_somebody_deletes_does_not_begin_anew_at_zero(
    plane: ControlPlane, namespace_name: str
) -> None:
    """Binds of earlier terms could not be told from ours."""
    cluster = cluster_of(plane)
    async with Client(cluster) as client:
        await make_namespace(client, namespace_name)

        def stand(first_term: int = 0) -> Election:
            return Election(
                cluster, "gone", namespace=namespace_name, times=QUICK, first_term=first_term, patience_s=None
            )

        first, second = stand(7).start(), stand()
        await until(lambda: first.term == 7)
        second.start()
        await until(lambda: second.holder() == first.identity)
        await asyncio.to_thread(first.stop, release=False)
        await client.delete(LEASES, "gone", namespace=namespace_name)
        await until(lambda: second.term is not None)
        assert second.term == 8
        await asyncio.to_thread(second.stop)


@pytest.mark.parametrize("lease_s", [3, 4, 6, 11, 12, 15, 60, 600])
def test_a_write_is_over_before_the_next_one_can_lead(lease_s: int) -> None:
    times = Times.of(lease_s)
    assert 0.5 < times.write_s < times.lease_s - times.renew_s
    assert Times.of(15) == Times() and Times.of(15).write_s == 4.0
