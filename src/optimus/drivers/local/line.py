"""The line between processes: frames of msgpack over a Unix socket.

Why: nothing that serves people may stall the loop that starts their work, so they are processes of their own.
Owns: the frames. A call has a number and gets one answer; whoever listens gets every change, in order.
Must not: know what is said.

    length (4 bytes, big endian) | msgpack of Call | Answer | News
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

LONGEST = 256 << 20


class RefusedError(Exception):
    """Whoever was called says no, with a code that says of which kind: invalid, conflict, missing, unavailable."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Call(Struct, frozen=True, tag=True):
    number: int
    verb: str
    arguments: dict[str, Any] = {}


class Answer(Struct, frozen=True, tag=True):
    number: int
    value: Any = None
    error: str = ""
    code: str = ""
    """Of an error: invalid, conflict, missing, unavailable."""


class News(Struct, frozen=True, tag=True):
    """What has changed in one turn; values as they are shown."""

    version: int
    jobs: dict[str, Any] = {}
    """By id; None: it is not there any more."""
    queues: Any = None
    nodes: Any = None
    pools: Any = None
    trouble: str = ""


Frame = Call | Answer | News
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


def packed(frame: Frame) -> bytes:
    body = _ENCODER.encode(frame)
    return len(body).to_bytes(4, "big") + body


async def received(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None when the other side is gone."""
    try:
        length = int.from_bytes(await reader.readexactly(4), "big")
        if length > LONGEST:
            return None
        return _DECODER.decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError, msgspec.MsgspecError):
        return None
