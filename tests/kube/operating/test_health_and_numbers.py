"""What probes and Prometheus are told by a real controller, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hack.controlplane import ControlPlane
from optimus.drivers.kube.controller import Controller, Settings
from optimus.drivers.kube.grouping import shipped_kinds
from optimus.drivers.kube.installing import NAMESPACE
from optimus.drivers.kube.metrics import METRICS, Metrics
from optimus.drivers.kube.mirror import Mirror
from optimus.kube import Cluster
from optimus.kube.credentials import TokenFile
from optimus.model.observations import PoolSeen, QueueGone, QueueSeen
from optimus.model.pools import NodePool
from optimus.model.queues import Queue
from optimus.telemetry.exposition import Kind
from tests.kube.body.clusters import until
from tests.kube.operating.installed import Installed

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+|\+Inf)$")


def samples(text: str) -> dict[str, float]:
    """`name{labels}` -> value; every line must be one that Prometheus reads."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, line
            found[line.rpartition(" ")[0]] = float(match[3])
    return found


def test_every_metric_is_on_its_page_and_every_one_on_the_page_is_told() -> None:
    table = PAGE.read_text().partition("<!-- metrics:start -->")[2].partition("<!-- metrics:end -->")[0]
    rows = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in table.strip().splitlines()[2:]]
    declared = [
        (f"`{one.name}`", str(one.kind), ", ".join(f"`{name}`" for name in one.labels) or "–", one.help)
        for one in METRICS
    ]
    assert rows == declared
    told = [family.metric for family in Metrics(Mirror(shipped_kinds())).families()]
    assert sorted(told, key=lambda one: one.name) == sorted(METRICS, key=lambda one: one.name)


def test_names_follow_the_conventions() -> None:
    for one in METRICS:
        assert one.name.startswith(("optimus_", "process_"))
        assert one.name.endswith("_total") == (one.kind is Kind.COUNTER), one.name
        if one.kind is Kind.HISTOGRAM:
            assert one.name.endswith("_seconds"), one.name


def test_a_loop_that_does_not_turn_any_more_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    made = Controller(Cluster(server="https://nowhere", credentials=TokenFile(tmp_path / "token")), Settings())
    made._beat -= 1_000
    well = [("loop", ""), ("watches", "")]
    assert made.alive_checks() == well, "it has not begun: a restart would not help"
    made.synced.set()
    assert dict(made.alive_checks())["loop"].startswith("no turn for 1000 s")
    made._alive()
    assert made.alive_checks() == well


def test_every_lead_is_told_queues_and_pools() -> None:
    mirror = Mirror(shipped_kinds())
    mirror.tenants.queue(Queue(name="vision"))
    mirror.tenants.pool(NodePool(name="a100"))
    first = mirror.everything()
    assert [type(fact) for fact in first] == [PoolSeen, QueueSeen]
    assert mirror.news() == []
    assert mirror.everything() == first, "another brain, which knows nothing"
    mirror.tenants.queue_gone("vision")
    assert mirror.news() == [QueueGone("vision")]


def test_a_day_of_a_controller(stand: Installed) -> None:
    """Ready when it has read everything; its numbers are those of the cluster; when it goes, the next one leads."""
    queue = stand.queue("team", gpu={"guarantee": 2, "limit": 6}, namespaces=[stand.namespace])
    stand.queue("orphan", parent="nobody")
    stand.nodes(1, gpus=4)
    first = stand.start("--lease-seconds=6")
    until(lambda: stand.told("/healthz")[0] == 200, "it is alive")
    until(lambda: stand.told("/readyz") == (200, "[+]sync ok\n[+]watches ok\n[+]lease ok\n"), "it is ready")
    stand.gang("runs", 3, notes=f", optimus.dev/queue: {queue}")
    until(lambda: len(stand.bound("runs")) == 3, "three run")
    stand.gang("waits", 2, notes=f", optimus.dev/queue: {queue}")

    def numbers() -> dict[str, float]:
        return samples(stand.told("/metrics")[1])

    def waiting() -> float:
        return sum(n for name, n in numbers().items() if name.startswith(f'optimus_workloads_pending{{queue="{queue}"'))

    until(lambda: waiting() == 1, "one waits")
    told = numbers()
    mine = f'{{queue="{queue}",pool="default"}}'
    assert told["optimus_leader"] == told["optimus_synced"] == 1
    gpus = {name: told[f"optimus_queue_gpus_{name}{mine}"] for name in ("allocated", "guarantee", "limit", "borrowed")}
    assert gpus == {"allocated": 3, "guarantee": 2, "limit": 6, "borrowed": 1}
    assert told[f"optimus_queue_gpus_demand{mine}"] == 5
    assert told['optimus_pool_gpus{pool="default",model="nvidia"}'] == stand.gpus()  # also on cordoned nodes
    assert told['optimus_pool_gpus_free{pool="default",model="nvidia"}'] == 1
    assert told['optimus_pool_gpus_fragmented{pool="default"}'] == 1
    assert told[f'optimus_workloads_running{{queue="{queue}"}}'] == 1
    assert told['optimus_api_requests_total{verb="bind",code="201"}'] == 3
    assert told["optimus_bind_duration_seconds_count"] == 3
    assert told[f'optimus_pod_scheduling_duration_seconds_count{{queue="{queue}"}}'] == 3
    assert told["optimus_decision_duration_seconds_count"] >= 2
    assert told['optimus_watch_relists_total{kind="pods"}'] == 1
    assert told['optimus_plan_actions_total{action="Start"}'] == 1
    orphan = f'optimus_conditions{{subject="queue {stand.namespace}-orphan",code="QueueInvalid"}}'
    assert told[orphan] == 1

    second = stand.start("--lease-seconds=6")
    until(lambda: stand.told("/readyz")[0] == 200, "the second one waits to lead, and is ready")
    assert samples(stand.told("/metrics")[1])["optimus_leader"] == 0
    assert f'queue="{queue}"' not in stand.told("/metrics")[1], "it does not tell what only the leader knows"
    first.terminate()
    assert first.wait(20) == 0
    until(lambda: holder(stand.plane) != "", "the lease was given back and taken, before it could run out")
    until(lambda: waiting() == 1, "the successor tells the same: it knows the queues, too")
    second.terminate()
    assert second.wait(20) == 0
    assert holder(stand.plane) == "", "whoever goes gives the lease back"
    assert "Traceback" not in stand.log()
    said = [json.loads(line)["message"] for line in stand.log().splitlines()]  # nothing but JSON
    assert sum("QueueInvalid: parent nobody does not exist" in one for one in said) == 2, "each leader says it once"


def holder(plane: ControlPlane) -> str:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/optimus-scheduler"
    return str(json.loads(plane.get(lease))["spec"].get("holderIdentity", ""))


def test_told_to_stop_before_it_has_read_everything_it_ends(stand: Installed) -> None:
    stand.token = stand.plane.token("nobody")  # who may read nothing, and tries again
    started = stand.start()
    until(lambda: stand.told("/readyz")[0] == 503, "it is alive and not ready")
    assert "[-]sync" in stand.told("/readyz")[1] and stand.told("/healthz")[0] == 200
    started.terminate()
    assert started.wait(20) == 0
