"""A process that wants to lead and, while it does, writes as fast as it may: who, in which term, how often.

    python -m tests.kube.client.rival KUBECONFIG NAMESPACE IDENTITY [--lease 3] [--renew 2] [--retry 0.3]
        [--freeze-at N] [--fenced] [--binds] [--timeout 4] [--clock-off SECONDS]

It writes into a ConfigMap of its own, guarded; the server's order of these writes is the audit. SIGTERM: it stops and
gives the lease back. `--freeze-at N`: at its Nth write it stops itself (SIGSTOP) after its guard said yes and before
the request leaves, which is the worst moment there is; with `--fenced`, that write names the version it means.
`--binds`: each turn also binds the pod IDENTITY-N, and binds of former terms that land in its own are undone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta

from optimus.kube import Change, Client, Done, Election, Reflector, Times, Writer, load
from optimus.kube import election as election_module
from optimus.kube.resources import CONFIG_MAPS, PODS
from optimus.kube.writing import TIMEOUT_S
from tests.kube.client.world import ConfigMap, Pod, config_map, document

LEASE = "leader"
SHARED = "shared"
"""What all of them change: where a late write hurts."""


TERM = "example.com/term"


class Undoing:
    """A leader that looks after its own term: a bind of a former one that was not there when it began came late."""

    def __init__(self, election: Election, writer: Writer, namespace: str) -> None:
        self._election, self._writer, self._namespace = election, writer, namespace
        self._bound: set[str] = set()
        self._tasks: set[asyncio.Task[object]] = set()

    def hear(self, change: Change[Pod]) -> None:
        pod = change.object
        if pod is None or not pod.spec.node_name or change.uid in self._bound:
            return
        self._bound.add(change.uid)
        term = self._election.term
        if term is not None and (pod.metadata.annotations or {}).get(TERM) != str(term):
            undo = self._writer.delete(PODS, pod.metadata.name, namespace=self._namespace, uid=change.uid, grace_s=0)
            self._tasks.add(asyncio.create_task(undo))


async def run(asked: argparse.Namespace) -> None:
    if asked.clock_off:
        wrong = timedelta(seconds=asked.clock_off)
        election_module._wall_clock = lambda: f"{datetime.now(UTC) + wrong:%Y-%m-%dT%H:%M:%S.%f}Z"
    cluster = load(asked.kubeconfig)
    times = Times(asked.lease, asked.renew, asked.retry)
    election = Election(cluster, LEASE, namespace=asked.namespace, identity=asked.identity, times=times)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    at = {"namespace": asked.namespace}
    async with Client(cluster) as client:
        await client.create(CONFIG_MAPS, document(config_map(asked.identity)), **at)
        count = 0
        frozen = False

        def guard() -> bool:
            nonlocal frozen
            yes = election.still_leader()
            if yes and count == asked.freeze_at and not frozen:
                frozen = True
                os.kill(os.getpid(), signal.SIGSTOP)
            return yes

        writer = Writer(client, guard=guard, timeout_s=asked.timeout)
        if asked.binds:
            undoing = Undoing(election, writer, asked.namespace)
            pods = Reflector(client, PODS, Pod, undoing.hear, **at)
            watching = asyncio.create_task(pods.run())
            await pods.synced.wait()
        election.start()
        while not stopped.is_set():
            election.alive()
            if (term := election.term) is not None:
                count += 1
                said = {"data": {"count": str(count), "term": str(term)}}
                if asked.binds:
                    notes = {TERM: str(term)}
                    await writer.bind(f"{asked.identity}-{count}", f"node-{asked.identity}", annotations=notes, **at)
                if asked.fenced:
                    seen = await client.get(CONFIG_MAPS, SHARED, ConfigMap, **at)
                    version = seen.metadata.resource_version
                    who = {"data": {"by": asked.identity, "term": str(term)}}
                    done = await writer.patch(CONFIG_MAPS, SHARED, who, resource_version=version, **at)
                    if not isinstance(done, Done):
                        continue
                await writer.patch(CONFIG_MAPS, asked.identity, said, **at)
            await asyncio.sleep(0.02)
        await asyncio.to_thread(election.stop)
        if asked.binds:
            watching.cancel()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("kubeconfig", "namespace", "identity"):
        parser.add_argument(name)
    parser.add_argument("--lease", type=int, default=3)
    parser.add_argument("--renew", type=float, default=2.0)
    parser.add_argument("--retry", type=float, default=0.3)
    parser.add_argument("--freeze-at", type=int, default=0)
    parser.add_argument("--fenced", action="store_true")
    parser.add_argument("--binds", action="store_true")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S)
    parser.add_argument("--clock-off", type=float, default=0.0)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
