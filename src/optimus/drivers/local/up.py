"""`optimus up`: one machine, from a folder to a running scheduler.

    this process: engine, body, keeper          ◄── engine.sock ──►   web process: HTTP, watchers
         │
         └── nursery ── supervisors, one for each replica, which outlive all of this

Why: one command, and everything that belongs together starts and ends together.
Owns: the processes, the port, the address file, and the words when one of them cannot be had.
Must not: know how any of it works.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from pathlib import Path

from msgspec import Struct, structs

from optimus.drivers.local import disk
from optimus.drivers.local.clusters import DEFAULT_QUEUE, Cluster, again
from optimus.drivers.local.journaling import KEPT_MIB, Recalled, begin_journal, kept_policy, recall
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.retention import Keep
from optimus.drivers.local.running import Running, address_file, now_ms
from optimus.drivers.local.store import Store, StoreError, StoreInUseError
from optimus.engine.engine import Engine
from optimus.engine.policy_loading import PolicyError
from optimus.model.queues import Queue, QueueState
from optimus.model.settings import Settings

LOG = logging.getLogger(__name__)
LOOPBACK = ("127.0.0.1", "::1", "localhost")
AGAIN_S = 1.0
ADDRESS_ROOM = 63
"""Bytes of the address file before the end of its line."""


class UpError(Exception):
    """It cannot start; the text says why and what to do."""


class Begun(Struct, frozen=True, kw_only=True):
    """It is up, and what people should know of it."""

    address: str
    token: str
    limits: str
    """What processes are held to."""
    cluster: str
    machine: str
    """What this machine really has, where nodes are virtual."""
    changed: list[str]
    """What is another cluster than at the last start, and what still runs on what is gone."""
    queue: str
    """One that takes work: the one that is meant where none is named, if it is there; empty: none does."""


def run(
    cluster: Cluster | None,
    folder: Path,
    *,
    host: str,
    port: int,
    policy: str,
    ready: Callable[[Begun], None],
    tell: Callable[[str], None],
    journal_mib: int = KEPT_MIB,
    keep: Keep = Keep(),  # noqa: B008 - frozen
    settings: Callable[[Settings], Settings] = lambda base: base,
    explainer: str = "",
) -> int:
    """Until it is told to stop. Returns how many replicas go on running without it. `cluster`: None for the one the
    store remembers, or what is found here; `settings`: its own, changed. `ready` is called once everything answers,
    `tell` when something is wrong with the store and when it is well again. `journal_mib`: so much of the journal is
    kept; 0: there is none. `keep`: how much of work that is over. `explainer`: a module that explains jobs to those who
    ask over HTTP (`web.explanations`)."""
    store = _hold(folder)  # before the port: who is up already has both, and another port would be no way out
    try:
        listening = _listen(host, port)
        token = "" if host in LOOPBACK else _token(folder)
    except UpError:
        store.close()
        raise
    _write_down("", address_file(folder))  # that of the last time: others trust it while the store is held
    if cluster is None:
        cluster = again(store.cluster())
    cluster = structs.replace(cluster, settings=settings(cluster.settings))
    try:
        engine = Engine(policy=kept_policy(policy, folder), settings=cluster.settings, on_notice=LOG.warning)
    except PolicyError as error:
        raise UpError(f"--policy: {error}") from error
    recalled = recall(folder)
    journal = begin_journal(engine, folder, journal_mib, now_ms())
    address = f"http://{_from_here(host)}:{listening.getsockname()[1]}"
    try:
        serve = partial(_serve, listening, folder, token, explainer)
        return asyncio.run(_run(cluster, store, serve, engine, recalled, address, token, ready, tell, keep))
    finally:
        if journal is not None:
            journal.close()


async def _run(
    cluster: Cluster,
    store: Store,
    serve: Callable[[], Coroutine[None, None, None]],
    engine: Engine,
    recalled: Recalled,
    address: str,
    token: str,
    ready: Callable[[Begun], None],
    tell: Callable[[str], None],
    keep: Keep,
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup`, and whoever else starts it deaf, means it
            loop.add_signal_handler(number, stop.set)
    running = Running(store, engine, cluster.nodes, tell, keep)
    try:
        changed = await running.open(cluster, recalled)
        if cluster.opening and not running.body.jobs:
            running.desk.submit(cluster.opening, "the opening", cluster.where)
    except (StoreError, RefusedError) as error:
        raise UpError(str(error)) from error
    except OSError as error:
        raise UpError(disk.advice(store.folder, error)) from error
    if not _write_down(address, address_file(store.folder)):
        changed.append(f"the address could not be written down; others say where it is: --target {address}")
    serving = asyncio.create_task(serve())
    turning = asyncio.create_task(running.run(stop))
    await asyncio.sleep(0)
    limits = running.limiting.told()
    machine = running.body.machine
    ready(
        Begun(
            address=address,
            token=token,
            limits=limits,
            cluster=cluster.told,
            machine=machine,
            changed=changed,
            queue=_one_that_takes_work(running.body.queues.values()),
        )
    )
    try:
        await turning
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        left = sum(len(replicas) for replicas in running.body.replicas.values())
        await running.close()
        _write_down("", address_file(store.folder))
    return left


def _one_that_takes_work(queues: Collection[Queue]) -> str:
    parents = {queue.parent for queue in queues}
    leaves = sorted(queue.name for queue in queues if queue.name not in parents and queue.state is QueueState.OPEN)
    return DEFAULT_QUEUE.name if DEFAULT_QUEUE.name in leaves else next(iter(leaves), "")


def _hold(folder: Path) -> Store:
    try:
        return Store(folder)
    except StoreInUseError as error:
        there = ""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            there = address_file(folder).read_text(encoding="utf-8").strip()
        raise UpError(f"optimus is up already at {there}: {error}" if there else str(error)) from error
    except StoreError as error:
        raise UpError(str(error)) from error


def _write_down(address: str, file: Path) -> bool:
    """For others to find, all of it or nothing. A file that is there is written in place, which needs no room: at the
    end it is emptied and not removed, so that the next start finds its place on a full disk."""
    line = f"{address:<{ADDRESS_ROOM}}\n".encode()
    new = file.with_suffix(f".{os.getpid()}")
    try:
        if file.exists() and file.stat().st_size == len(line):
            with file.open("r+b", buffering=0) as written:
                written.write(line)
        else:
            new.write_bytes(line)
            new.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        return False
    return True


async def _serve(listening: socket.socket, folder: Path, token: str, explainer: str) -> None:
    """The web process, and another one when it dies: the port stays ours."""
    theirs, ours = os.pipe()
    os.set_inheritable(theirs, True)
    try:
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "optimus.drivers.local.web.process",
                f"--socket={listening.fileno()}",
                f"--parent={theirs}",
                f"--store={folder}",
                f"--explainer={explainer}",
                pass_fds=(listening.fileno(), theirs),
                env={**os.environ, "OPTIMUS_SERVE_TOKEN": token},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            await process.wait()
            await asyncio.sleep(AGAIN_S)
    finally:
        os.close(ours)
        os.close(theirs)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError) as error:
        listening.close()
        why = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        if isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL):
            raise UpError(f"{host} is no address of this machine ({why}): name another one (--host)") from error
        raise UpError(f"port {port} of {host} cannot be had ({why}): name another one (--port)") from error
    listening.setblocking(False)
    return listening


def _from_here(host: str) -> str:
    """Where it can be reached on this machine, as an address is written."""
    shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "localhost": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"[{shown}]" if ":" in shown else shown


def _token(folder: Path) -> str:
    """Made once, readable by its owner only."""
    file = folder / "token"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not file.exists() or not file.read_text(encoding="utf-8").strip():  # empty would mean: no token is needed
            made = folder / f"token.{os.getpid()}"
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as new:
                new.write(secrets.token_urlsafe(24))
            made.replace(file)
        file.chmod(0o600)
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UpError(f"{file} cannot be used: {error.strerror}") from error
