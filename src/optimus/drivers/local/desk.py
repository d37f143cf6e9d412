"""The desk: what people may ask of this machine, and the answers.

Why: every way in (command line, page, Python) asks for the same things and gets the same refusals.
Owns: the verbs, and the words with which one is refused.
Must not: wait, or do anything that the next turn of the body would not write down.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import structs

from optimus.api.submitting import load_submission_text
from optimus.api.writing import to_document
from optimus.drivers.local import views
from optimus.drivers.local.body import Body
from optimus.drivers.local.clusters import DEFAULT_QUEUE
from optimus.drivers.local.line import RefusedError
from optimus.drivers.local.retention import FORGOTTEN
from optimus.drivers.local.sizing import allowed_sizes
from optimus.drivers.local.store import StoreError, Submitted
from optimus.engine.copying import copy_of
from optimus.lives import Outcome, loss_of, when_resumed
from optimus.model.gang_validation import MOST_REPLICAS
from optimus.model.jobs import Job
from optimus.model.pools import DEFAULT_POOL
from optimus.model.queues import Queue
from optimus.model.reasons import counted, named
from optimus.model.units import format_moment_ms
from optimus.model.workloads import Group

MOST_NAMED = 10
"""Of those that are in the way."""


class Desk:
    def __init__(self, body: Body) -> None:
        self._body = body
        self.verbs: dict[str, Callable[..., Any]] = {
            "submit": self.submit,
            "cancel": self.cancel,
            "suspend": self.suspend,
            "resume": self.resume,
            "scale": self.scale,
            "delete_queue": self.delete_queue,
            "delete_pool": self.delete_pool,
            "document": self.document,
            "events": self.events,
            "everything": self.everything,
            "snapshot": self.snapshot,
        }

    def answer(self, verb: str, arguments: dict[str, Any]) -> Any:
        """The value; raises `RefusedError`."""
        found = self.verbs.get(verb)
        if found is None:
            raise RefusedError("missing", f"there is no verb {verb!r}")
        try:
            return found(**arguments)
        except StoreError as error:
            raise RefusedError("unavailable", str(error)) from error
        except TypeError as error:
            raise RefusedError("invalid", f"{verb}: {error}") from error

    # -- verbs ------------------------------------------------------------------------------------------------------

    def submit(self, text: str, source: str = "submitted", where: str = "", fresh: bool = False) -> dict[str, Any]:
        """Jobs, queues and pools of one text; all of it or nothing. `fresh`: their names were made, and one that is
        taken, also by a job that is over, is not what was meant."""
        self._body.look_for_trouble()
        if self._body.trouble:
            raise RefusedError("unavailable", self._body.trouble)
        loaded = load_submission_text(text, source, now_ms=_now_ms(), known=self._body.queues)
        jobs = list(loaded.jobs)
        if not (loaded.errors or loaded.jobs or loaded.queues or loaded.pools):
            raise RefusedError(
                "invalid", f"{source}: there is nothing in it; write kind: UnifiedJob, Queue or NodePool"
            )
        known = {*self._body.queues, *(queue.name for queue in loaded.queues)}
        errors = [str(error) for error in loaded.errors]
        errors += self._nobodys_pools(loaded.queues, {pool.name for pool in loaded.pools}, source)
        errors += [text for job in jobs for text in _from_nowhere(job, where, source)]
        self._demand_room(errors, jobs, known, source, fresh=fresh)
        now_ms = _now_ms()
        for pool in loaded.pools:
            self._body.put_pool(pool)
        for queue in loaded.queues:
            self._body.put_queue(queue)
        submitted = [_submitted(job, now_ms, where, loaded.written.get(job.id, {})) for job in jobs]
        replaced = {job.id: views.job_view(self._body, job.id).phase for job in jobs if job.id in self._body.jobs}
        self._body.accept(submitted)
        for job_id, phase in replaced.items():
            text = f"an earlier job of this name ({phase}) is forgotten, with its checkpoints in the store"
            self._body.happened(now_ms, job_id, "Replaced", text)
        return {
            "jobs": [job.id for job in jobs],
            "queues": [queue.name for queue in loaded.queues],
            "pools": [pool.name for pool in loaded.pools],
            "warnings": [str(warning) for warning in loaded.warnings],
            "replaced": replaced,
        }

    def cancel(self, job: str, who: str = "") -> str:
        one, phase = self._live(job, leaving=True)
        if self._is_leaving(job):
            already = "cancelled already" if self._is_cancelled(job) else "over already, its last replicas are leaving"
            return f"{one.job.id}: {already} ({phase})"
        self._body.cancel(job, f"cancelled by {who}" if who else "cancelled", _now_ms())
        return f"{one.job.id}: cancelled ({phase} before)"

    def suspend(self, job: str) -> str:
        return self._set_suspended(job, suspended=True)

    def resume(self, job: str) -> str:
        return self._set_suspended(job, suspended=False)

    def scale(self, job: str, replicas: int) -> str:
        one, _ = self._live(job)
        role = _sole_role(one.job)
        if role is None:
            raise RefusedError("invalid", f"{job} has several roles or groups; submit it anew to change its size")
        if not role.min <= replicas:
            raise RefusedError("invalid", f"{job} needs at least {role.min} replicas: {replicas} is too few")
        if replicas > MOST_REPLICAS:
            raise RefusedError("invalid", f"{job}: {replicas} replicas are more than {MOST_REPLICAS:,}")
        sizes = allowed_sizes(one, role, replicas)
        if sizes and replicas > sizes[-1]:
            listed = named([str(size) for size in sizes])
            raise RefusedError("invalid", f"{job} has sizes of its own: {listed}; {replicas} is beyond them")
        kept = tuple(size for size in sizes if size <= replicas)
        most = kept[-1] if kept else replicas
        gang = structs.replace(one.job.workload.gang, roles=(structs.replace(role, max=most, sizes=kept),))
        workload = structs.replace(one.job.workload, gang=gang)
        self._body.change(structs.replace(one, job=structs.replace(one.job, workload=workload)))
        why = "" if most == replicas else f"; {replicas} is none of its sizes, and {most} is the next below"
        return f"{job}: at most {counted(most, 'replica')} from now on ({role.max} before){why}"

    def delete_queue(self, name: str) -> str:
        """One that nothing needs: neither queues below it nor jobs that are not over."""
        queues = self._body.queues
        if name not in queues:
            raise RefusedError("missing", f"there is no queue {name}; known are {_listed(queues)}")
        below = [queue.name for queue in queues.values() if queue.parent == name]
        if below:
            raise RefusedError("conflict", f"queue {name} has queues below it: delete {_listed(below)} first")
        inside = sorted(job for job, one in self._body.jobs.items() if one.job.workload.queue == name)
        live = [job for job in inside if not views.job_view(self._body, job).final]
        if live:
            raise RefusedError("conflict", f"queue {name} has jobs: cancel them or let them end: {_listed(live)}")
        self._body.drop_queue(name)
        return f"queue {name} deleted"

    def delete_pool(self, name: str) -> str:
        """Its nodes go to the pool that matches next, or to the default one."""
        pools = self._body.pools
        if name not in pools:
            raise RefusedError("missing", f"there is no pool {name}; known are {_listed(pools)}")
        quotas = [queue.name for queue in self._body.queues.values() if any(q.pool == name for q in queue.quotas)]
        if quotas:
            raise RefusedError("conflict", f"pool {name} has quotas: submit without them or delete {_listed(quotas)}")
        asking = sorted(job for job, one in self._body.jobs.items() if name in one.job.workload.pools)
        live = [job for job in asking if not views.job_view(self._body, job).final]
        if live:
            raise RefusedError(
                "conflict", f"pool {name} is asked for by jobs: cancel them or let them end: {_listed(live)}"
            )
        self._body.drop_pool(name)
        return f"pool {name} deleted"

    def document(self, job: str) -> dict[str, Any]:
        one = self._one(job)
        return to_document(one.job, msgspec.json.decode(one.written or b"{}"))

    def events(self, job: str) -> list[dict[str, Any]]:
        self._one(job)
        told = self._body.store.happenings(job)
        # an earlier job of this name may have been forgotten: that is not of this one
        return [msgspec.to_builtins(views.event_view(one)) for one in told if one.code != FORGOTTEN]

    def everything(self) -> dict[str, Any]:
        """For whoever has just come: what is shown of all that is there."""
        body = self._body
        return {
            "version": body.version,
            "jobs": {job: msgspec.to_builtins(views.job_view(body, job)) for job in body.jobs},
            "queues": msgspec.to_builtins(views.queue_views(body)),
            "nodes": msgspec.to_builtins(views.node_views(body)),
            "pools": msgspec.to_builtins([views.pool_view(pool) for pool in body.pools.values()]),
            "trouble": body.trouble,
        }

    def snapshot(self) -> bytes:
        """A copy of the brain's state: whoever explains or forecasts does it elsewhere."""
        return copy_of(self._body.engine, _now_ms(), self._body.remaining)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _one(self, job: str) -> Submitted:
        one = self._body.jobs.get(job)
        if one is None:
            last = self._body.store.happenings(job, 1)
            if last and last[0].code == FORGOTTEN:
                when = format_moment_ms(last[0].at_ms, _now_ms())
                raise RefusedError("missing", f"there is no job {job} any more: it was over, and forgotten at {when}")
            raise RefusedError("missing", f"there is no job {job}")
        return one

    def _live(self, job: str, *, leaving: bool = False) -> tuple[Submitted, str]:
        """`leaving`: also one that is over but for replicas that are still there."""
        one = self._one(job)
        view = views.job_view(self._body, job)
        if view.final:
            raise RefusedError("conflict", f"{job} is over: {view.phase}")
        if not leaving and self._is_leaving(job):
            what = "is being cancelled" if self._is_cancelled(job) else "is over"
            raise RefusedError("conflict", f"{job} {what}: its last replicas are leaving")
        return one, view.phase

    def _is_leaving(self, job: str) -> bool:
        """Of one that is not final."""
        return all(life.over for life in self._body.lives_of(job))

    def _is_cancelled(self, job: str) -> bool:
        return any(life.outcome is Outcome.CANCELLED for life in self._body.lives_of(job))

    def _set_suspended(self, job: str, *, suspended: bool) -> str:
        one, phase = self._live(job)
        if one.job.workload.suspended == suspended:
            return f"{job}: {'suspended already' if suspended else 'is not suspended'} ({phase})"
        now_ms = _now_ms()
        price = self._price(job, now_ms) if suspended else ""
        workload = structs.replace(one.job.workload, suspended=suspended)
        self._body.change(structs.replace(one, job=structs.replace(one.job, workload=workload)))
        text = "paused by its owner" if suspended else "by its owner; it waits for room"
        self._body.happened(now_ms, job, "Suspended" if suspended else "Resumed", f"{text}; {price}" if price else text)
        said = f"{job}: {'suspended' if suspended else 'resumed'} ({phase} before)"
        return f"{said}; {price}" if price else said

    def _price(self, job: str, now_ms: int) -> str:
        """Of stopping it now; empty where nothing of it runs."""
        table, lives = self._body.engine.state.workloads, self._body.lives_of(job)
        losses = [
            loss_of(table, life.workload, now_ms, self._saved_step(life.workload))
            for life in lives
            if life.leaving is None
        ]
        return when_resumed([loss for loss in losses if loss is not None])

    def _saved_step(self, workload: str) -> int | None:
        """Of its last checkpoint, in its own words."""
        checkpoint = self._body.progress.get(workload, {}).get("checkpoint")
        step = checkpoint.get("step") if isinstance(checkpoint, dict) else None
        return step if isinstance(step, int) else None

    def _nobodys_pools(self, queues: Iterable[Queue], coming: set[str], source: str) -> list[str]:
        """A quota in a pool that nobody has would be kept, and mean nothing."""
        seen = self._body.engine.state.pool_views
        with_nodes = {view.pool.name for view in seen if len(view.rows)} or {DEFAULT_POOL}
        known = {*self._body.pools, *coming, *with_nodes}
        return [
            f"{source}: queue {queue.name} has a quota in the pool {quota.pool}, which nobody has; "
            f"name the pool under pools: {_listed(known)}"
            for queue in queues
            for quota in queue.quotas
            if quota.pool not in known
        ]

    def _demand_room(self, errors: list[str], jobs: list[Job], known: set[str], source: str, *, fresh: bool) -> None:
        """All that stands in the way is told at once: what is wrong with the text, and what is here. A queue that is
        named and nowhere is among the errors; a job that names none is in `default`, which may be gone."""
        default = DEFAULT_QUEUE.name
        nowhere = [
            f"{source}: {job.id}: there is no queue {default}; known are {_listed(known)}"
            for job in jobs
            if job.workload.queue == default and default not in known
        ]
        taken = [f"{source}: {text}" for job in jobs if (text := self._in_the_way(job, fresh=fresh))]
        if errors or nowhere or taken:
            texts = "\n".join((*errors, *nowhere, *taken))
            raise RefusedError("invalid" if errors or nowhere else "conflict", texts)

    def _in_the_way(self, job: Job, *, fresh: bool) -> str:
        if job.id not in self._body.jobs:
            return ""
        view = views.job_view(self._body, job.id)
        if not view.final and self._is_leaving(job.id):
            return f"{job.id} is over, but its last replicas are still leaving: try again soon"
        if not view.final:
            return f"{job.id} is there and {view.phase}: cancel it, or choose another name"
        if fresh:
            return f"{job.id} is there already ({view.phase}): try again, and another name is made"
        return ""


def _submitted(job: Job, now_ms: int, where: str, written: Any) -> Submitted:
    uid = os.urandom(5).hex()
    return Submitted(
        job=job,
        uid=uid,
        submitted_ms=now_ms,
        where=where,
        checkpoints=f"{job.id}.{uid}",
        written=msgspec.json.encode(written),
    )


def _from_nowhere(job: Job, where: str, source: str) -> list[str]:
    """A folder as seen from where it was submitted, if nobody says where that is."""
    named = (("workdir", job.template.workdir), ("checkpoint.path", job.saving.path))
    return [
        f"{source}: {job.id}: {field} {path} is relative, and nothing says to what: write the whole path, "
        "or name the folder that it is submitted from (where)"
        for field, path in named
        if path and not where and not path.startswith("/")
    ]


def _sole_role(job: Job) -> Any:
    gang: Group = job.workload.gang
    return gang.roles[0] if len(gang.roles) == 1 and not gang.groups else None


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return (
        ", ".join(ordered[:MOST_NAMED]) + (f" and {len(ordered) - MOST_NAMED} more" * (len(ordered) > MOST_NAMED))
        or "none"
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
