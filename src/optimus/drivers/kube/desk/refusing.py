"""What a server refuses, in the words of the command line.

Why: a 403 is an answer for people: which right is missing, where, and whom to ask.
Owns: how errors of `optimus.kube` become those that every target raises.
Must not: hide what the server said.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from optimus.client.connection import ApiError, JobError, Unreachable
from optimus.kube import errors
from optimus.kube.errors import KubeError

CODES = {401: "forbidden", 403: "forbidden", 404: "missing", 409: "conflict", 410: "conflict", 422: "invalid"}
T = TypeVar("T")


class Refused(ApiError):  # noqa: N818 - an answer of the server, and its text is the message
    """The server, or what it serves, says no."""


async def asked(work: Awaitable[T]) -> T:
    """Raises `JobError` alone."""
    try:
        return await work
    except KubeError as error:
        raise in_words(error) from error


def in_words(error: KubeError) -> JobError:
    if isinstance(error, errors.ConfigError):
        return JobError(_as_typed(str(error)))
    if isinstance(error, errors.Unauthorized):
        return Refused(401, "forbidden", f"the server does not know who asks (401): log in anew ({error.message})")
    if isinstance(error, errors.Forbidden):
        return Refused(403, "forbidden", f"the server does not allow it (403): {error.message}")
    if isinstance(error, errors.ApiError):
        return Refused(error.status, CODES.get(error.status, ""), _as_said(error))
    return Unreachable(f"{error}: look at the context (kubectl config get-contexts), or name another (--target)")


def _as_typed(text: str) -> str:
    """What is a flag elsewhere is part of the target here."""
    return text.replace("with --context", "with --target kube:NAME").replace("--kubeconfig or KUBECONFIG", "KUBECONFIG")


def _as_said(error: errors.ApiError) -> str:
    return error.message if error.status in CODES else f"{error.message} ({error.status})"


def missing(text: str) -> Refused:
    return Refused(404, "missing", text)


def conflict(text: str) -> Refused:
    return Refused(409, "conflict", text)


def invalid(text: str) -> Refused:
    return Refused(422, "invalid", text)
