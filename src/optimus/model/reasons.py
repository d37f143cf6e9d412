"""Why not: the closed vocabulary of refusals, delays and evictions.

Why: a reason is produced once, in `decide`, and shown by the command line, events, metrics and the page
alike. `Reason.code` is what machines count, `text()` is what people read.
Owns: the codes, the facts each must carry, and its sentence.
Must not: be extended with free text elsewhere. A new "no" is a new line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from string import Formatter

from msgspec import Struct

from optimus.model.queues import CPU, GPU, MEMORY
from optimus.model.units import format_resource

Fact = int | str


class Code(StrEnum):
    # the request can never be met as things are set up
    NO_SUCH_QUEUE = "NoSuchQueue"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    QUEUE_INVALID = "QueueInvalid"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    NO_SUCH_POOL = "NoSuchPool"
    CLASS_NOT_ALLOWED = "ClassNotAllowed"
    TOO_LARGE_FOR_QUEUE = "TooLargeForQueue"
    ABOVE_LIMIT = "AboveLimit"
    NO_SUCH_DEVICE = "NoSuchDevice"
    NO_USABLE_NODE = "NoUsableNode"
    NO_MATCHING_NODE = "NoMatchingNode"
    NO_SUCH_LEVEL = "NoSuchLevel"
    NEVER_FITS = "NeverFits"
    UNSUPPORTED = "Unsupported"
    MALFORMED = "Malformed"
    PUT_ASIDE = "PutAside"
    # the queue says no for now
    QUEUE_STOPPED = "QueueStopped"
    OVER_LIMIT = "OverLimit"
    GUARANTEE_FULL = "GuaranteeFull"
    WAITED_TOO_LONG = "WaitedTooLong"
    SUSPENDED = "Suspended"
    NOT_READY = "NotReady"
    # room is missing for now
    NO_ROOM = "NoRoom"
    FRAGMENTED = "Fragmented"
    DOMAIN_TOO_FULL = "DomainTooFull"
    NO_ROOM_FOR_ALL = "NoRoomForAll"
    INTERFERENCE = "Interference"
    NEIGHBOURS = "Neighbours"
    RESERVED = "Reserved"
    FASTER_LATER = "FasterLater"
    RESERVED_FOR_OTHER = "ReservedForOther"
    WAITING_FOR_ROOM = "WaitingForRoom"
    STOPPING = "Stopping"
    BACKING_OFF = "BackingOff"
    NOT_REACHED = "NotReached"
    # why running work was stopped or made smaller
    RECLAIMED = "Reclaimed"
    PREEMPTED = "Preempted"
    TURN_OVER = "TurnOver"
    MOVED = "Moved"
    FASTER_DEVICES = "FasterDevices"
    GAVE_FASTER = "GaveFaster"
    SHRUNK = "Shrunk"
    RESIZED = "Resized"
    REPACKED = "Repacked"
    ODD_SIZE = "OddSize"
    ABOVE_MAXIMUM = "AboveMaximum"
    BELOW_MINIMUM = "BelowMinimum"
    DEVICE_FAILED = "DeviceFailed"
    RAN_TOO_LONG = "RanTooLong"
    IDLE = "Idle"
    LIMIT_LOWERED = "LimitLowered"
    SIZE_LOWERED = "SizeLowered"
    QUEUE_DRAINING = "QueueDraining"
    HOLD_EXPIRED = "HoldExpired"
    ROOM_LOST = "RoomLost"
    OVERBOOKED = "Overbooked"
    BOUND_LATE = "BoundLate"
    # what is to be known of work that runs
    STAYS = "Stays"
    LEFT_BEHIND = "LeftBehind"
    GROWS_NOW = "GrowsNow"
    GROWS_LATER = "GrowsLater"
    NOT_WORTH_IT = "NotWorthIt"
    KEPT_FOR_OTHERS = "KeptForOthers"
    # why a GPU is idle although somebody waits
    HELD_FOR = "HeldFor"
    RESERVED_FOR = "ReservedFor"


NEVER_AS_IT_IS = frozenset(
    {
        Code.NO_SUCH_QUEUE,
        Code.QUEUE_NOT_LEAF,
        Code.QUEUE_INVALID,
        Code.NAMESPACE_NOT_ALLOWED,
        Code.NO_SUCH_POOL,
        Code.CLASS_NOT_ALLOWED,
        Code.TOO_LARGE_FOR_QUEUE,
        Code.ABOVE_LIMIT,
        Code.NO_SUCH_DEVICE,
        Code.NO_MATCHING_NODE,
        Code.NO_SUCH_LEVEL,
        Code.NEVER_FITS,
        Code.UNSUPPORTED,
        Code.MALFORMED,
        Code.PUT_ASIDE,
    }
)
"""Waiting does not help: somebody has to change the job, its queue or the cluster."""
SENTENCES: dict[Code, str] = {
    Code.NO_SUCH_QUEUE: "there is no queue {queue}",
    Code.QUEUE_NOT_LEAF: "queue {queue} has queues below it; submit to one of them: {children}",
    Code.QUEUE_INVALID: "queue {queue} cannot be used: {problem}",
    Code.NAMESPACE_NOT_ALLOWED: "namespace {namespace} may not use queue {queue}",
    Code.NO_SUCH_POOL: "there is no node pool {pool}",
    Code.CLASS_NOT_ALLOWED: "queue {queue} does not take {asked} work",
    Code.TOO_LARGE_FOR_QUEUE: "asks for {asked} {resource}; queue {queue} allows {allowed} per workload",
    Code.ABOVE_LIMIT: "asks for {asked} {resource}; queue {queue} may have {limit} in pool {pool}",
    Code.NO_SUCH_DEVICE: "no node of pool {pool} has {asked}",
    Code.NO_USABLE_NODE: "pool {pool} has no usable node",
    Code.NO_MATCHING_NODE: "no usable node of pool {pool} matches the node selector, affinity and tolerations",
    Code.NO_SUCH_LEVEL: "pool {pool} has no topology level {level}",
    Code.NEVER_FITS: "needs {asked}; pool {pool} can hold {possible} even when empty",
    Code.UNSUPPORTED: "uses {feature}, which is not supported; {instead}",
    Code.MALFORMED: "cannot be placed as it is written: {problem}",
    Code.PUT_ASIDE: "the scheduler could not take it in and has put it aside ({problem}): write it otherwise, and tell "
    "whoever runs the scheduler, whose log has the details",
    Code.QUEUE_STOPPED: "queue {queue} is {state}",
    Code.OVER_LIMIT: "queue {queue} is at its limit of {limit} {resource} in pool {pool}: {used} in use, {asked} asked",
    Code.GUARANTEE_FULL: "not preemptible, and queue {queue} has a guarantee of {guarantee} {resource} in pool {pool}: "
    "{used} taken by work that cannot be preempted, {asked} asked",
    Code.WAITED_TOO_LONG: "did not start within the {allowed} that queue {queue} allows",
    Code.SUSPENDED: "paused by its owner",
    Code.NOT_READY: "cannot be placed yet: {missing}",
    Code.NO_ROOM: "no node of pool {pool} has {asked} free; best has {best}",
    Code.FRAGMENTED: "{free} free in pool {pool}, but {asked} are needed on one node; best has {best}",
    Code.DOMAIN_TOO_FULL: "needs {asked} inside one {level}; best is {domain} with room for {best}",
    Code.NO_ROOM_FOR_ALL: "pool {pool} has room for {possible} of {needed} replicas; {free} free",
    Code.INTERFERENCE: "no shared device of pool {pool} would stay below {bound} predicted activity",
    Code.NEIGHBOURS: "there is room in pool {pool}, but not where its rule about others allows it: {rule}",
    Code.RESERVED: "a start by about {at} is reserved, behind {workloads}; until then {why}",
    Code.FASTER_LATER: "could start in pool {slower} now, but ends sooner in pool {pool}, where a start at about {at} "
    "is reserved, behind {workloads}",
    Code.RESERVED_FOR_OTHER: "would delay {workload}, for which room is reserved at about {at}",
    Code.WAITING_FOR_ROOM: "room is held for it; waiting for {workloads} to leave by {at} ({doing})",
    Code.STOPPING: "leaving its room; it will wait again when its last replica has ended",
    Code.BACKING_OFF: "its last start failed ({failure}); next try at {at}",
    Code.NOT_REACHED: "not looked at in this cycle: the work budget was used up by workloads ahead of it",
    Code.RECLAIMED: "taken back for {beneficiary} of queue {queue}, which is inside its {entitlement}",
    Code.PREEMPTED: "gave way to {beneficiary} of higher priority {priority} in the same queue",
    Code.TURN_OVER: "gave its turn to {beneficiary}, which comes before it in queue {queue}; it resumes from its "
    "checkpoint",
    Code.MOVED: "made room so that {beneficiary} can start; it continues elsewhere",
    Code.FASTER_DEVICES: "moves to devices on which it is {gain} times as fast; it continues from its checkpoint",
    Code.GAVE_FASTER: "left faster devices to {beneficiary}, which gains more from them; it continues elsewhere",
    Code.SHRUNK: "gave {replicas} above its minimum to {beneficiary}",
    Code.RESIZED: "goes on with {after} instead of {before} replicas: the elastic work of queue {queue} gets its sizes "
    "together",
    Code.REPACKED: "moved with all its replicas, so that others of queue {queue} get whole nodes; it continues there",
    Code.ODD_SIZE: "gave up {replicas}: their number was not an allowed size",
    Code.ABOVE_MAXIMUM: "gave up {replicas}: its maximum is smaller now",
    Code.BELOW_MINIMUM: "{running} of at least {minimum} replicas left, no replacement in time; restarted as a whole",
    Code.DEVICE_FAILED: "{replicas} given up for lost: {where} unhealthy for {grace}, and nothing was heard",
    Code.RAN_TOO_LONG: "ran longer than the {allowed} it may",
    Code.IDLE: "used no GPU for {idle}; queue {queue} allows {allowed}",
    Code.LIMIT_LOWERED: "queue {queue} is above its limit of {limit} {resource} in pool {pool}",
    Code.SIZE_LOWERED: "gave up {replicas}: queue {queue} allows {allowed} {resource} per workload",
    Code.QUEUE_DRAINING: "queue {queue} is being drained",
    Code.HOLD_EXPIRED: "its place was held for {held} and not taken",
    Code.ROOM_LOST: "a part of the room held for it is gone",
    Code.OVERBOOKED: "came to {node} at the same moment as others, {given}; it starts again where there is room",
    Code.BOUND_LATE: "a leader whose time was over sent it to {node}, and {why}; it starts again with its gang",
    Code.STAYS: "was to leave, and stays: {failure}; it is not asked again for {pause}",
    Code.LEFT_BEHIND: "runs on {where}, no longer part of the cluster: it may end there, and nothing new is put there",
    Code.GROWS_NOW: "gets up to {replicas} replicas with the next decision",
    Code.GROWS_LATER: "gets up to {replicas} replicas in {wait}, if nothing else comes: it {did} {ago} ago, and a size "
    "stays for a while",
    Code.NOT_WORTH_IT: "there is room for {replicas} replicas, but a restart costs {cost}: as it runs now, that does "
    "not pay back yet",
    Code.KEPT_FOR_OTHERS: "{free} free in pool {pool}: not enough for its next size, kept for others, or worth "
    "more to them",
    Code.HELD_FOR: "held for {workload} of queue {queue} until {at}",
    Code.RESERVED_FOR: "room here is reserved for {workload} of queue {queue} at about {at}; what is over by then may "
    "use it",
}
"""The names in braces are the facts. Beside a `resource`, whole numbers are amounts in its unit (GPU and CPU in
thousandths, memory in MiB, the rest in pieces)."""

FACTS: dict[Code, tuple[str, ...]] = {
    code: tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(sentence) if name))
    for code, sentence in SENTENCES.items()
}
"""In the order of the sentence."""
_NAMES = {code: frozenset(names) for code, names in FACTS.items()}
_NOUNS = {GPU: "GPU", CPU: "CPU"}


class Reason(Struct, frozen=True):
    code: Code
    facts: dict[str, Fact] = {}

    def text(self) -> str:
        sentence, resource = SENTENCES[self.code], self.facts.get("resource")
        if not isinstance(resource, str):
            return sentence.format_map(self.facts)
        told = {name: format_resource(resource, f) if isinstance(f, int) else f for name, f in self.facts.items()}
        names = FACTS[self.code]
        told["resource"] = _noun(resource, told[names[names.index("resource") - 1]])
        return sentence.format_map(told)


def _noun(resource: str, number: str) -> str:
    """What stands behind a number: `GPUs`, `of memory`, `fpga`."""
    if resource == MEMORY:
        return "of memory"
    return counted(number, _NOUNS[resource]).partition(" ")[2] if resource in _NOUNS else resource


def named(names: Sequence[str], most: int = 3) -> str:
    """`a`, `a, b`, `a, b, c and 4 more`; `others` for nobody in particular."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "others"


def counted(number: int | str, noun: str) -> str:
    """`1 replica`, `3 replicas`, `0.5 GPUs`."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"


def reason(code: Code, **facts: Fact) -> Reason:
    """Build a reason; a missing or surplus fact is a programming error and is said at once."""
    if facts.keys() != _NAMES[code]:
        raise TypeError(f"{code} takes the facts {sorted(FACTS[code])}, got {sorted(facts)}")
    return Reason(code, facts)
