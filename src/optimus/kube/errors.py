"""What can go wrong between here and an API server, as a small family.

    KubeError
      ConfigError       a kubeconfig, a certificate or a plugin is not as it must be; the text says where
      NotSent           nothing has left this process: nobody answered, or a guard said no
      NoAnswer          something was sent and no answer came: it may have been done or not
        Garbled          one came and cannot be read
      ApiError          the server said no: status, reason, message, retry_after_s
        Unauthorized 401 · Forbidden 403 · NotFound 404 · Conflict 409 · Expired 410 · Invalid 422 · TooMany 429
        ServerFault 5xx  it may have been done or not

Whether a write may be repeated follows from the class alone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

LONGEST_MESSAGE = 500


class KubeError(Exception):
    """Whatever this package raises on purpose."""


class ConfigError(KubeError):
    """Says what is wrong in which file, and what to do."""


class NotSent(KubeError):
    """The server has certainly not seen it."""


class NoAnswer(KubeError):
    """The connection broke, or the time was up: the server may have done it."""


class Garbled(NoAnswer):
    """An answer came, and cannot be read."""


class ApiError(KubeError):
    """`cause`: more exact than `reason`, where the server gave one: DisruptionBudget, FieldManagerConflict …"""

    def __init__(
        self, status: int, reason: str, message: str, retry_after_s: float | None = None, cause: str = ""
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.cause = cause


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    """It exists already, or is not the version that was meant."""


class Expired(ApiError):
    """The server no longer has this resource version or `continue`: begin again."""


class Invalid(ApiError):
    pass


class TooMany(ApiError):
    """Throttled, or a disruption budget is used up: later."""


class ServerFault(ApiError):
    pass


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooMany,
}


class _Cause(msgspec.Struct, gc=False):
    reason: str | None = None


class _Details(msgspec.Struct, rename="camel", gc=False):
    retry_after_seconds: int | None = None
    causes: list[_Cause] | None = None


class Status(msgspec.Struct, gc=False):
    """What the server answers instead of an object, also inside a watch."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(Status)


def api_error(status: int, body: bytes, retry_after: str = "") -> ApiError:
    """From an answer; `retry_after` is the header, which counts more than the body."""
    try:
        told = _STATUS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        told = Status(message=body[:LONGEST_MESSAGE].decode(errors="replace").strip())
    return from_status(told, status, _seconds(retry_after))


def from_status(told: Status, status: int = 0, retry_after_s: float | None = None) -> ApiError:
    code = status or told.code or 500
    if retry_after_s is None and told.details is not None and told.details.retry_after_seconds:
        retry_after_s = float(told.details.retry_after_seconds)
    causes = (told.details and told.details.causes) or []
    cause = next((one.reason for one in causes if one.reason), "")
    kind = _BY_STATUS.get(code, ServerFault if code >= 500 else ApiError)
    message = (told.message or "no words came with it")[:LONGEST_MESSAGE]
    return kind(code, told.reason or "", message, retry_after_s, cause)


def _seconds(header: str) -> float | None:
    """Retry-After: a number, or a date that some proxies send."""
    if not header:
        return None
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max((parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
