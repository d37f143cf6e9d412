"""Logs: one line per event, for people or for machines.

    2026-01-05T14:20:00.123Z INFO leading, term 3
    {"time": "2026-01-05T14:20:00.123Z", "level": "info", "logger": "optimus.drivers.kube.controller", "message": …}

Owns: the two forms. Must not: know what is said; nothing that is logged may hold a secret, and a test looks.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    PLAIN = "plain"
    JSON = "json"


def set_up(log_format: LogFormat, *, verbose: bool) -> None:
    """For the whole process, on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if log_format is LogFormat.JSON else PlainLines())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler], force=True)
    # Its access log would tell every look of a probe.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


class PlainLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{_moment(record)} {record.levelname} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
