"""The nursery: a warm interpreter that turns orders into supervisors, and is gone when its scheduler is.

Why: starting an interpreter takes 15 ms of a core, forking this one less than one.
Owns: the fork of supervisors, a batch at a time.
Must not: know what becomes of them, keep anything a supervisor would inherit, or import what takes memory.

    orders ──► nursery ── fork ──► one that bears a batch ── fork ──► supervisor, supervisor, …
                  ▲                     │  reports `born` with their lifelines, ends: init adopts them
                  └───── waits for it ──┘

The line for reports is held by the nursery, by the one in between, and by each supervisor until it has said how its
start went. When the keeper reads the end of that line, nobody is left who could still say something.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys

from optimus.drivers.local.keeping import wire
from optimus.drivers.local.keeping.identity import boot_id
from optimus.drivers.local.keeping.kernel import be_called
from optimus.drivers.local.keeping.supervisor import supervise

FLOOD = 8
"""More jobs than this at once are short ones, as a rule, or all that ran before a restart: up to so many starts share a
supervisor then. Copying the interpreter for each would take longer than the work."""


def serve(orders_fd: int, reports_fd: int, open_files: int) -> None:
    """Until the scheduler closes its end, or dies."""
    for fd in (orders_fd, reports_fd):
        os.set_inheritable(fd, False)
    orders, reports = socket.socket(fileno=orders_fd), socket.socket(fileno=reports_fd)
    # The scheduler raised its own limit for its many pidfds. Replicas get what they would have had.
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    _take_no_signals()
    be_called(b"optimus-nursery")
    boot = boot_id()
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection would touch, and so copy, every page that is shared with the supervisors
    buffer = bytearray()
    while chunk := orders.recv(1 << 18):
        buffer += chunk
        bodies = list(wire.complete(buffer))
        for first in range(0, len(bodies), wire.BATCH):
            _bear(bodies[first : first + wire.BATCH], orders, reports, boot)


def _take_no_signals() -> None:
    """Supervisors inherit this: a Ctrl-C in the terminal is meant for the scheduler.

    Handlers that do nothing, since exec takes handlers away: a replica finds every signal as if nobody had touched it.
    Ignored ones would stay ignored. All others become usual again here, whatever the scheduler was started with; were
    SIGCHLD ignored, the kernel would reap, and numbers could be reused.
    """
    shrugged = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ}
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, _shrug if number in shrugged else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _shrug(_number: int, _frame: object) -> None:
    pass


def _bear(bodies: list[bytes], orders: socket.socket, reports: socket.socket, boot: str) -> None:
    try:
        between = os.fork()
    except OSError as error:
        for body in bodies:
            _refuse(reports, wire.unpacked(body), error)
        return
    if between:
        _, status = os.waitpid(between, 0)
        if status:  # it was killed: some may be unreported, and the end of the line makes the keeper look
            sys.exit("the nursery gives up: a process of its own was killed")
        return
    status = 1
    try:
        orders.close()
        be_called(b"optimus-keeps")
        os.dup2(1, 2)  # /dev/null: a supervisor that kept the terminal or a pipe open would keep others waiting
        _bear_all(bodies, reports, boot)
        status = 0
    finally:
        os._exit(status)


def _bear_all(bodies: list[bytes], reports: socket.socket, boot: str) -> None:
    born: list[tuple[bytes, int]] = []
    for orders in _together([wire.unpacked(body) for body in bodies]):
        try:
            lifelines = [os.pipe() for _ in orders]  # closed on exec, as all that Python opens
            pid = os.fork()
        except OSError as error:
            for order in orders:
                _refuse(reports, order, error)
            continue
        if not pid:
            for line in (*(hears for _, hears in born), *(hears for hears, _ in lifelines)):
                os.close(line)
            supervise(orders, [holds for _, holds in lifelines], reports.fileno(), boot)
        for order, (hears, holds) in zip(orders, lifelines, strict=True):
            os.close(holds)
            born.append((order.serial, hears))
    if born:
        socket.send_fds(reports, [wire.report(wire.BORN, *(serial for serial, _ in born))], [line for _, line in born])


def _together(orders: list[wire.Order]) -> list[list[wire.Order]]:
    """Who shares a supervisor: those of one job, which share its fate anyway, and in a flood a few of several jobs."""
    groups: list[list[wire.Order]] = []
    for order in orders:
        if groups and order.job and groups[-1][0].job == order.job:
            groups[-1].append(order)
        else:
            groups.append([order])
    if len(groups) <= FLOOD:
        return groups
    shared: list[list[wire.Order]] = [[]]
    for group in groups:
        if shared[-1] and len(shared[-1]) + len(group) > FLOOD:
            shared.append([])
        shared[-1] += group
    return shared


def _refuse(reports: socket.socket, order: wire.Order, error: OSError) -> None:
    why = b"no process could be started: " + wire.told(error)
    reports.send(wire.report(wire.REFUSED, order.serial, why, b""))
