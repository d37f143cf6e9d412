"""What a journal is made of, and how a record becomes bytes.

Why: the engine, the replay and every tool that looks at the past speak of the same three records.
Owns: the records, the flaws a reader may meet, `JournalError`, the encoding and its version.
Must not: touch a file, or know what is inside a state's dump.

A record is one msgpack message. Integers beyond 64 bits, which a careless manifest may carry, do not fit in
msgpack: such a record is written as JSON instead, so that one bad workload never costs a gap. Either may be
compressed: plans repeat themselves. The first byte tells what it is: 0x80..0x8f msgpack, `{` JSON, `x` zlib.
"""

from __future__ import annotations

import zlib
from enum import StrEnum

import msgspec
from msgspec import Struct

from optimus.model.observations import Observation
from optimus.model.plans import Budget, Plan

FORMAT_VERSION = 1


class JournalError(Exception):
    """The journal cannot be written or read; the message says where and what to do."""


class Opened(Struct, frozen=True, kw_only=True, tag=True):
    """The first record of every segment. Its fields may be added to, never changed: it names the format."""

    format_version: int
    optimus_version: str
    sequence: int
    """Of the first cycle that will follow."""
    now_ms: int
    policy: str
    seed: int
    continues: bool
    """The state is exactly what the last cycle of the segment before left; False after a start or a gap."""
    note: str = ""


class Keyframe(Struct, frozen=True, kw_only=True, tag=True):
    """The whole state before cycle `sequence`. The dump is one msgpack message and opaque here."""

    sequence: int
    now_ms: int
    state: msgspec.Raw


class Cycle(Struct, frozen=True, kw_only=True, tag=True):
    """Everything that went into one decision, and what came out."""

    sequence: int
    now_ms: int
    observations: tuple[Observation, ...]
    budget: Budget
    policy: str
    seed: int
    plan: Plan


class Facts(Struct, frozen=True, kw_only=True, tag="Cycle"):
    """A cycle as far as it was observed: for readers whom the plan does not concern, which is most of it."""

    sequence: int
    now_ms: int
    observations: tuple[Observation, ...]


Record = Opened | Keyframe | Cycle
Observed = Opened | Keyframe | Facts


class FlawKind(StrEnum):
    TORN = "torn"  # the journal ends inside a record: the writer died there, or is writing it right now
    DAMAGED = "damaged"  # a record does not match its checksum, or the order of records is broken
    FOREIGN = "foreign"  # written in a format this version does not read
    GAP = "gap"  # cycles were decided and not recorded (disk full), or their segment was deleted


class Flaw(Struct, frozen=True):
    """A place where the journal is not whole."""

    kind: FlawKind
    segment: str
    """File name."""
    offset: int
    """Byte in the file at which the unreadable part begins."""
    message: str

    def __str__(self) -> str:
        return f"{self.segment}, byte {self.offset}: {self.message}"


_msgpack = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()
_from_msgpack = msgspec.msgpack.Decoder(Record)
_from_json = msgspec.json.Decoder(Record)
_facts_from_msgpack = msgspec.msgpack.Decoder(Observed)
_facts_from_json = msgspec.json.Decoder(Observed)
_raw = msgspec.msgpack.Decoder(msgspec.Raw)


def encode(record: Record) -> bytes:
    """One record as bytes; JournalError if it holds something that cannot be written down exactly."""
    try:
        try:
            return _msgpack.encode(record)
        except OverflowError:
            payload = _json.encode(record)
            _from_json.decode(payload)  # JSON has no NaN: find out now, not at replay
            return payload
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise JournalError(f"a {type(record).__name__} cannot be written down: {error}") from error


def compress(payload: bytes) -> bytes:
    """A smaller payload for the same record, quickly: about ten times smaller at a few hundred MB/s."""
    return zlib.compress(payload, 1)


def decode(payload: bytes) -> Record:
    """The record in `payload`; msgspec.MsgspecError if there is none."""
    payload = _inflated(payload)
    record: Record = _from_json.decode(payload) if payload[:1] == b"{" else _from_msgpack.decode(payload)
    return record


def decode_facts(payload: bytes) -> Observed:
    """The same without plans, in a third of the time."""
    payload = _inflated(payload)
    record: Observed = (_facts_from_json if payload[:1] == b"{" else _facts_from_msgpack).decode(payload)
    return record


def _inflated(payload: bytes) -> bytes:
    if payload[:1] != b"x":
        return payload
    try:
        return zlib.decompress(payload)
    except zlib.error as error:
        raise msgspec.DecodeError(str(error)) from error


def as_state(dump: bytes) -> msgspec.Raw:
    """A state's dump as it is put into a keyframe; JournalError unless it is exactly one msgpack message."""
    try:
        return _raw.decode(dump)
    except (TypeError, msgspec.MsgspecError) as error:
        raise JournalError(f"the dump of the state is not one msgpack message: {error}") from error
