"""Frames: how records lie in a file so that a torn or damaged one is noticed.

    mark (4 bytes) | length (u32, little-endian) | crc32 of length and payload (u32) | payload

Why: a process may be killed and a machine may lose power in the middle of a write.
Owns: the frame layout, walking frames, and finding the next good frame after a bad one (that is what the mark is for).
Must not: know what a payload means, or name, create and delete files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, NamedTuple
from zlib import crc32

MARK = b"\xf7OJ\n"
_HEADER = Struct("<4sII")
HEADER_BYTES = _HEADER.size
MAX_PAYLOAD_BYTES = 2**32 - 1


class Frame(NamedTuple):
    offset: int
    payload: bytes


class BadFrame(NamedTuple):
    offset: int
    message: str
    torn: bool
    """The file ends before the frame does."""


def pack(payload: bytes) -> bytes:
    return header(payload) + payload


def header(payload: bytes) -> bytes:
    """What goes before the payload; apart, so that a large one need not be copied."""
    return _HEADER.pack(MARK, len(payload), _checksum(payload))


def walk(file: BinaryIO) -> Iterator[Frame | BadFrame]:
    """Frames from where the file stands to its end; a bad one is the last."""
    offset = file.tell()
    while head := file.read(HEADER_BYTES):
        if len(head) < HEADER_BYTES:
            yield BadFrame(offset, f"the file ends {len(head)} bytes into a frame header", torn=True)
            return
        mark, length, checksum = _HEADER.unpack(head)
        if mark != MARK:
            yield BadFrame(offset, "no frame begins here", torn=False)
            return
        rest = os.fstat(file.fileno()).st_size - offset - HEADER_BYTES  # asked each time: it may be growing
        if length > rest:  # never read by a length that may be garbage
            yield BadFrame(offset, f"a frame of {length} bytes, and the file ends after {rest}", torn=True)
            return
        payload = file.read(length)
        if len(payload) < length or _checksum(payload) != checksum:
            yield BadFrame(offset, f"the checksum of a frame of {length} bytes is wrong", torn=len(payload) < length)
            return
        yield Frame(offset, payload)
        offset += HEADER_BYTES + length


def find(data: bytes, start: int) -> Frame | None:
    """The first whole frame at or after `start`, whatever is before it."""
    offset = data.find(MARK, start)
    while offset >= 0 and offset + HEADER_BYTES <= len(data):
        _, length, checksum = _HEADER.unpack_from(data, offset)
        begin = offset + HEADER_BYTES
        if begin + length <= len(data):
            payload = data[begin : begin + length]
            if _checksum(payload) == checksum:
                return Frame(offset, payload)
        offset = data.find(MARK, offset + 1)
    return None


def _checksum(payload: bytes) -> int:
    return crc32(payload, crc32(len(payload).to_bytes(4, "little")))
