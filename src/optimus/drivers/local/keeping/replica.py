"""How a supervisor brings a replica into the world: what was ordered, in a session of its own, writing to its log.

Why: nothing of the supervisor may reach user code (files, signals, session), and every failure has a sentence.
Owns: the last steps before exec.
Must not: put anything on record; the supervisor does, before and after.

    no limits   posix_spawn: the child borrows the supervisor's memory until its exec, and nothing is copied
    limits      fork: the child has to put itself into its cgroup before it runs anything
"""

from __future__ import annotations

import contextlib
import os

from optimus.drivers.local.keeping import cgroups, wire

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself would double the memory of a supervisor
    from collections.abc import Callable

MARK = b"OPTIMUS_ATTEMPT_FOLDER="
"""By its environment a process is known to belong to an attempt, even if its parents are gone and it fled its group."""
_NOT_FOUND, _CANNOT_RUN = 127, 126  # as shells have it


class NotStartedError(Exception):
    """The command did not run: how a shell would have ended, and why."""

    def __init__(self, code: int, why: bytes) -> None:
        super().__init__(why)
        self.code, self.why = code, why


def spawned(order: wire.Order, log: int) -> int:
    """The number of the process. This one's folder is then the order's workdir."""
    try:
        os.chdir(order.workdir)
    except OSError as error:
        raise NotStartedError(_CANNOT_RUN, b"workdir %s: %s" % (order.workdir, wire.told(error))) from None
    begin = _forked if order.cgroups else _borrowing
    env = dict(item.split(b"=", 1) for item in order.env) | {MARK[:-1]: order.folder}
    try:
        return _found(order, env, lambda path: begin(path, order, env, log))
    except FileNotFoundError:
        raise NotStartedError(_NOT_FOUND, b"command not found: " + order.argv[0]) from None
    except OSError as error:
        why = b"%s cannot be run: %s" % (order.argv[0], wire.told(error))
        raise NotStartedError(_CANNOT_RUN, why) from None


def _found(order: wire.Order, env: dict[bytes, bytes], begin: Callable[[bytes], int]) -> int:
    """Or raises: what is in the way where the command was found, else that it was not found."""
    command = order.argv[0]
    if b"/" in command:
        return begin(command)
    denied: OSError | None = None
    for folder in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        try:
            return begin((folder or b".") + b"/" + command)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            denied = error
    raise denied or FileNotFoundError(2, os.strerror(2))


def _borrowing(path: bytes, order: wire.Order, env: dict[bytes, bytes], log: int) -> int:
    to_log = [(os.POSIX_SPAWN_DUP2, log, stream) for stream in (1, 2)]  # 0 is /dev/null since the nursery began
    return os.posix_spawn(path, order.argv, env, file_actions=to_log, setsid=True)


def _forked(path: bytes, order: wire.Order, env: dict[bytes, bytes], log: int) -> int:
    """OSError, as with posix_spawn: the child says through a pipe, which exec closes, what was in the way."""
    if not os.access(path, os.F_OK):
        raise FileNotFoundError(2, os.strerror(2))
    hears, tells = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(log, stream)
            with contextlib.suppress(OSError):  # limits that cannot be kept do not make a start fail
                cgroups.enter(order.cgroups)
            os.execve(path, order.argv, env)  # noqa: S606 - to run it is what we are for
        except OSError as error:
            os.write(tells, b"%d" % (error.errno or 0))
        finally:
            os._exit(_CANNOT_RUN)
    os.close(tells)
    failed = os.read(hears, 64)
    os.close(hears)
    if failed:
        os.waitpid(pid, 0)
        raise OSError(int(failed), os.strerror(int(failed)))
    return pid
