"""Waiting for a job: its state and its output as they come, also when the scheduler restarts meanwhile.

Why: nobody should poll, and a restart of `optimus up` ends no job, so it must not end those who wait for one.
Owns: when to ask again, and for how long.
Must not: show anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from optimus.client.connection import ApiError, Connection, JobError, Unreachable

PATIENCE_S = 120.0
"""For a scheduler that does not answer."""
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
POLL_S = 2.0
"""Where there is no stream of events."""
GONE = 503
CUT_AT_LEAST = 4096
"""Logs are cut by whole blocks of a disk."""
View = dict[str, Any]


class Patience:
    """What to do when nobody answers: wait a little, a little longer, and at last give up."""

    def __init__(self, connection: Connection, until: float | None = None) -> None:
        self._connection = connection
        self._until = until
        self._lost: float | None = None
        self._times = 0

    def well(self) -> None:
        self._lost, self._times = None, 0

    def lost(self, error: JobError) -> None:
        """Returns when it is time to ask again; raises the error when it is not worth it."""
        if isinstance(error, ApiError) and error.status != GONE:
            raise error
        now = time.monotonic()
        self._lost = self._lost or now
        if now - self._lost > PATIENCE_S:
            raise error
        pause = PAUSES_S[min(self._times, len(PAUSES_S) - 1)]
        self._times += 1
        time.sleep(pause if self._until is None else max(min(pause, self._until - now), 0))
        self._connection.look_again()


def views(connection: Connection, job: str, until: float | None = None) -> Iterator[View]:
    """What is shown of a job: now, and whenever it changes, at most until then. Raises `JobError` if it is gone."""
    patience = Patience(connection, until)
    streams = True
    while until is None or time.monotonic() < until:
        try:
            if not streams:
                yield connection.get(f"/v1/jobs/{job}")
                time.sleep(POLL_S if until is None else max(min(POLL_S, until - time.monotonic()), 0))
                continue
            for name, told in connection.events(until=until, job=job):
                if name == "behind":
                    break
                patience.well()
                jobs = told.get("jobs") or {}
                if job in jobs and jobs[job] is not None:
                    yield jobs[job]
                elif job in jobs or name == "everything":
                    raise ApiError(404, "missing", f"there is no job {job}")  # noqa: TRY301 - as when it is asked for
        except ApiError as error:
            if (streams and error.status in (405, 422, 501)) or (error.status == 404 and error.code != "missing"):
                streams = False
            else:
                patience.lost(error)
        except Unreachable as error:
            if until is None or time.monotonic() < until:
                patience.lost(error)


def lines(
    connection: Connection,
    job: str,
    *,
    follow: bool,
    tail: int | None,
    replica: str,
    attempt: int | None = None,
    part: int | None = None,
) -> Iterator[View]:
    """What its replicas have written: records of one line, or of several with the ends between them, as they are there
    at a time. Following ends with the job; a stream that breaks off goes on where it was. What was cut out of a log
    before it was read is told as such."""
    patience = Patience(connection)
    seen: dict[str, int] = {}
    """By start: where what was read ends."""
    newest: dict[str, int] = {}
    """By replica: when the last start began that was read. Older ones are before the tail."""
    while True:
        try:
            query = {"follow": int(follow), "tail": None if seen else tail, "replica": replica, "attempt": attempt}
            for line in connection.lines(f"/v1/jobs/{job}/logs", **query, part=part, together=1):
                patience.well()
                start, at, began = line["start"], line["at"], _began(line["start"])
                if tail is not None and start not in seen and began < newest.get(line["replica"], 0):
                    continue
                if start in seen and line["end"] <= seen[start]:
                    continue
                if start in seen and at < seen[start]:
                    rest = _after(line, seen[start])
                    if rest is None:
                        continue
                    line, at = rest, seen[start]  # noqa: PLW2901 - what is left of it
                if start in seen and at - seen[start] >= CUT_AT_LEAST:
                    gone = (at - seen[start]) >> 10
                    yield {**line, "text": f"… {gone} KiB of this log were cut out before they were read"}
                seen[start] = line["end"]
                newest[line["replica"]] = max(began, newest.get(line["replica"], 0))
                yield line
            if not follow or connection.get(f"/v1/jobs/{job}")["final"]:
                return
        except (ApiError, Unreachable) as error:
            if not follow:
                raise
            patience.lost(error)


def _began(start: str) -> int:
    last = start.rpartition("-")[2]
    return int(last) if last.isdigit() else 0


def _after(line: View, at: int) -> View | None:
    """What of a record begins there; None: nothing. Of several lines the text has the bytes that were written."""
    raw = line["text"].encode()
    if line["end"] - line["at"] > len(raw) + 1:
        return None
    before, rest = raw[: at - line["at"]], raw[at - line["at"] :]
    if not rest and not before.endswith(b"\n"):  # only the end of a line that was read when it had none
        return None
    return {**line, "at": at, "number": line["number"] + before.count(b"\n"), "text": rest.decode(errors="replace")}


def changes(connection: Connection) -> Iterator[View]:
    """Everything that is shown, and then whatever changes. After a restart everything comes once more."""
    patience = Patience(connection)
    while True:
        try:
            for name, told in connection.events():
                if name == "behind":
                    break
                patience.well()
                yield told
        except (ApiError, Unreachable) as error:
            patience.lost(error)
