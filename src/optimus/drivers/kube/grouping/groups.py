"""Pods and owners in, gangs and slots out: fed with one change after the other.

    pod ─ controller ─► ReplicaSet ─ controller ─► Deployment        the topmost owner that the table knows is the work
    pod ─ PodGroup, label optimus.dev/group                          where no owner makes a gang of its pods

The native PodGroup binds the pods of an owner, too: they wait until it is there. What a PodGroup asks for counts where
all pods of a gang name it and nobody else does: one that several gangs share cannot be kept, and they are told.

A pod whose chain has an owner that is not known yet is in no gang; `missing` says what to read. An owner that is not to
be had (deleted, or not ours to read) ends the chain where it is.

Why: every change costs the same, whether the cluster has fifty pods or fifty thousand.
Owns: who belongs to whom. The result follows from what is there now, and from the slots that pods have.
Must not: talk to a server; decide anything about admission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from optimus.drivers.kube.grouping.building import Gang, Member, NamedPodGroup, build_group
from optimus.drivers.kube.grouping.declared import DeclaredRole, declared_roles
from optimus.drivers.kube.grouping.kinds import Kind, Kinds, StopHow, kind_name, short_names
from optimus.drivers.kube.grouping.overrides import GROUP, ROLE, kept_slot, word_on
from optimus.drivers.kube.grouping.podgroups import (
    APIS,
    NATIVE,
    asks_for_no_gang,
    is_pod_group,
    least_members,
    named_by,
    wishes,
)
from optimus.drivers.kube.grouping.records import ALONE, PART, Group, ObjectRef, Slot
from optimus.drivers.kube.grouping.seats import Seats
from optimus.drivers.kube.grouping.unified import declared_by_job
from optimus.drivers.kube.grouping.words import role_and_index, word_of
from optimus.drivers.kube.objects import Anything, Meta, Owner, Pod

Key = tuple[str, str, str]
"""(kind, namespace, name)."""
Handle = str | Key
"""How an owner was looked for: by uid, or by name where only a label or a PodGroup names it."""
DEEPEST_CHAIN = 8


class _Found(NamedTuple):
    """Where a pod belongs."""

    id: str
    kind: Kind | None
    kind_name: str
    top: Key | None
    """The object that is the work: an owner or a PodGroup."""
    api_version: str = ""
    uid: str = ""


class Groups:
    def __init__(self, kinds: Kinds, remembered: Mapping[str, Slot] | None = None) -> None:
        """`remembered`: slots by uid of pod, from before; those written on pods are read without it."""
        self._kinds = kinds
        self._short = short_names((*(kind.name for kind in kinds), *(api.kind for api in APIS)))
        self._by_label = tuple(kind for kind in kinds if kind.pods.owner is not None)
        self._parents_of = {kind.roles_from: kind.name for kind in kinds if kind.roles_from}
        self._remembered = dict(remembered or {})
        self._pods: dict[str, Member] = {}
        self._gangs: dict[str, Gang] = {}
        self._things: dict[str, Anything] = {}
        self._named: dict[Key, set[str]] = {}
        self._absent: set[Handle] = set()
        self._via: dict[Handle, set[str]] = {}
        """Pods whose chain was looked up there."""
        self._wanted: dict[Handle, ObjectRef] = {}
        self._ids_of: dict[Key, dict[str, int]] = {}
        """Gangs that an object is the work of, with the number of their pods (and one for the object itself)."""
        self._naming: dict[Key, set[str]] = {}
        """By PodGroup: gangs with pods that name it."""
        self._children: dict[str, set[str]] = {}
        self._declared: dict[str, tuple[Anything, tuple[DeclaredRole, ...]]] = {}
        self._changed: set[str] = set()
        self._built: dict[str, Group] = {}

    @classmethod
    def of(
        cls,
        kinds: Kinds,
        *,
        owners: Iterable[Anything] = (),
        pods: Iterable[Pod] = (),
        absent: Iterable[Handle] = (),
        remembered: Mapping[str, Slot] | None = None,
    ) -> Groups:
        """All at once: the same as change by change, given the same slots."""
        groups = cls(kinds, remembered)
        for thing in owners:
            groups.owner(thing)
        groups._absent.update(absent)
        seated = groups._remembered
        first = sorted(pods, key=lambda p: (not (p.metadata.uid in seated or kept_slot(p.metadata)), _age(p.metadata)))
        for pod in first:
            groups.pod(pod)
        return groups

    # -- questions --------------------------------------------------------------------------------------------------

    @property
    def absent(self) -> frozenset[Handle]:
        return frozenset(self._absent)

    def missing(self) -> tuple[ObjectRef, ...]:
        """Owners to read next; answer each with `owner` or `owner_absent`."""
        return tuple(self._wanted.values())

    def take_changed(self) -> set[str]:
        """Ids of gangs that came, changed or went since the last time."""
        taken, self._changed = self._changed, set()
        return taken

    def ids(self) -> tuple[str, ...]:
        return tuple(self._gangs)

    def group(self, gang_id: str) -> Group | None:
        gang = self._gangs.get(gang_id)
        if gang is None:
            return None
        if gang_id not in self._built:
            self._built[gang_id] = self._build(gang)
        return self._built[gang_id]

    def members(self, gang_id: str) -> Set[str]:
        """Uids of its pods, those that are over included."""
        return self._gangs[gang_id].pods if gang_id in self._gangs else frozenset()

    def look_again(self, gang_id: str) -> None:
        """Something has changed that this package does not know of."""
        self._touch(gang_id)

    def group_of(self, uid: str) -> str | None:
        """The gang of a pod; None while an owner of it is not known."""
        member = self._pods.get(uid)
        return member.gang_id if member else None

    def slot_of(self, uid: str) -> Slot | None:
        """None while it waits for its predecessor to be gone, once it is over, and while an owner is not known."""
        member = self._pods.get(uid)
        gang = self._gangs.get(member.gang_id) if member and member.gang_id else None
        seats = gang.seats.get(member.role) if member and gang else None
        ordinal = seats.ordinal_of(uid) if seats else None
        return None if member is None or ordinal is None else Slot(member.role, ordinal)

    def pod_at(self, gang_id: str, slot: Slot) -> Pod | None:
        seats = self._gangs[gang_id].seats.get(slot.role) if gang_id in self._gangs else None
        uid = seats.holders.get(slot.ordinal) if seats else None
        return self._pods[uid].pod if uid else None

    def slots(self) -> dict[str, Slot]:
        """Of all pods that have one, by uid: what `of` needs to give the same result."""
        return {uid: slot for uid in self._pods if (slot := self.slot_of(uid))}

    # -- changes of pods ----------------------------------------------------------------------------------------------

    def pod(self, pod: Pod) -> None:
        """It is there, or has changed."""
        uid = pod.metadata.uid
        member = self._pods.get(uid)
        if member is None:
            member = self._pods[uid] = Member(pod)
            self._settle(member)
            self._look_again(uid)
            return
        old, member.pod = member.pod, pod
        if (old.over, _ended_well(old)) != (pod.over, _ended_well(pod)) and member.gang_id:
            self._unseat(member)
            self._seat(member)
        if not _same_words(old.metadata, pod.metadata) or old.spec.scheduling_group != pod.spec.scheduling_group:
            self._settle(member)
            if _controller(old.metadata) != _controller(pod.metadata):
                self._look_again(uid)
        if member.gang_id and old.spec != pod.spec:
            self._touch(member.gang_id)

    def pod_gone(self, uid: str) -> None:
        member = self._pods.get(uid)
        if member is None:
            return
        self._leave(member)
        self._stop_looking(uid, set(member.via))
        del self._pods[uid]
        self._look_again(uid)

    def strand(self, uid: str) -> None:
        """Nobody waits for its end any more: its seat is for whoever comes next."""
        member = self._pods.get(uid)
        if member is not None and not member.stranded:
            member.stranded = True
            if member.gang_id:
                self._unseat(member)

    def divide(self, uid: str, part: str) -> None:
        """Put a pod that is not on a node yet into a part of its role; empty: with those that are in none."""
        member = self._pods.get(uid)
        if member is not None and member.gang_id and member.part != part:
            member.part = part
            self._settle(member)

    def part_of(self, uid: str) -> str:
        return self._pods[uid].part

    # -- changes of owners --------------------------------------------------------------------------------------------

    def owner(self, thing: Anything) -> None:
        """An owner or a PodGroup is there, or has changed."""
        uid, key = thing.metadata.uid, _key(thing)
        old = self._things.get(uid)
        if old is not None and old.metadata.owner_references != thing.metadata.owner_references:
            self.owner_gone(uid, absent=False)
            old = None
        before = self._places(old)
        self._things[uid] = thing
        self._named.setdefault(key, set()).add(uid)
        if old is None:
            self._absent -= {uid, key}
            if (own := self._own_id(thing)) is not None:
                self._hold(own, key)
            if (parent := self._parent(thing)) is not None:
                self._children.setdefault(parent.uid, set()).add(uid)
        if old is None or before != self._places(thing):
            self._look_below(thing)
        self._touch_all(thing, old)

    def owner_gone(self, uid: str, *, absent: bool = True) -> None:
        """It was deleted; its pods may still be there for a while."""
        thing = self._things.pop(uid, None)
        if thing is None:
            return
        key = _key(thing)
        self._named[key].discard(uid)
        last = not self._named[key]
        if last:
            del self._named[key]
        self._declared.pop(uid, None)
        self._touch_all(thing, None)
        if (own := self._own_id(thing)) is not None:
            self._release(own, key)
        if (parent := self._parent(thing)) is not None:
            self._children.get(parent.uid, set()).discard(uid)
            if not self._children.get(parent.uid):
                self._children.pop(parent.uid, None)
        if absent:
            self._absent |= {handle for handle in (uid, key) if handle in self._via and (handle == uid or last)}
        self._look_below(thing)

    def owner_absent(self, ref: ObjectRef) -> None:
        """What `missing` asked for is not there, or may not be read."""
        handle: Handle = ref.uid or (ref.kind, ref.namespace, ref.name)
        if handle in self._via:
            self._absent.add(handle)
            self._look_again(handle)

    # -- where a pod belongs ------------------------------------------------------------------------------------------

    def _settle(self, member: Member) -> None:
        """Find out where it belongs, and put it there; where it was already, it keeps its seat."""
        before, member.via = member.via, []
        found = self._find(member)
        for handle in member.via:
            self._via.setdefault(handle, set()).add(member.uid)
        self._stop_looking(member.uid, set(before) - set(member.via))
        if found is None:
            self._leave(member)
            return
        role, index = self._role_of(member.pod, found)
        role += self._part_of(member, role)
        stays = (member.gang_id, member.role) == (found.id, role)
        self._hold(found.id, found.top)  # before it lets go: the last one out would take the gang along
        if stays:
            self._release(member.gang_id, member.top)
        else:
            self._leave(member)
        indexed_anew = stays and member.index != index
        member.gang_id, member.role, member.index = found.id, role, index
        member.kind, member.kind_name, member.top = found.kind, found.kind_name, found.top
        member.api_version, member.top_uid = found.api_version, found.uid
        if not stays:
            self._gangs[found.id].pods.add(member.uid)
            self._name(member, 1)
            self._seat(member)
            return
        if member.pod_group != _pod_group_of(member.pod):
            self._name(member, -1)
            self._name(member, 1)
        if indexed_anew and not member.pod.over:
            self._index_anew(member)

    def _index_anew(self, member: Member) -> None:
        """Its owner counts otherwise, or is gone: who has a seat keeps it, who waits for one looks for it again."""
        seats = self._gangs[member.gang_id].seats[member.role]
        waiting = seats.waiting_for(member.uid)
        again = [member.uid] if seats.ordinal_of(member.uid) is None else waiting
        seats.index_anew(member.uid, member.index)
        for uid in again:
            self._unseat(self._pods[uid])
        for uid in again:
            self._seat(self._pods[uid])

    def _find(self, member: Member) -> _Found | None:
        """None: an owner is not known, and has been asked for."""
        pod = member.pod
        namespace = pod.metadata.namespace
        ref = _controller(pod.metadata)
        kind: Kind | None = None
        top: Key | None = None
        api_version = uid = ""
        named = self._named_by_label(pod) if ref is not None else None
        if named is not None:
            kind, top = named
            if not self._known(member, top, ObjectRef(api_version="", kind=top[0], namespace=namespace, name=top[2])):
                return None
        else:
            kind_seen = ""
            for _ in range(DEEPEST_CHAIN):
                if ref is None:
                    break
                name = kind_name(ref.api_version, ref.kind)
                if name == "Pod":
                    member.via.append(ref.uid)
                    above = self._pods.get(ref.uid)
                    ref = _controller(above.pod.metadata) if above else None
                    continue
                here = self._kinds.get(name)
                if here is None and kind is not None:
                    break
                kind_seen = kind_seen or name
                if here is not None:
                    kind, top, api_version, uid = here, (name, namespace, ref.name), ref.api_version, ref.uid
                wanted = ObjectRef(
                    api_version=ref.api_version, kind=name, namespace=namespace, name=ref.name, uid=ref.uid
                )
                if not self._known(member, ref.uid, wanted):
                    return None
                thing = self._things.get(ref.uid)
                ref = _controller(thing.metadata) if thing else None
            if kind is None and kind_seen:
                return self._without_gang(member, None, kind_seen, None)
        if kind is None or kind.alone:
            return self._without_gang(member, kind, kind.name if kind else "Pod", top, api_version, uid)
        assert top is not None
        asked = self._ask_for_pod_group(member)
        if asked is not None and asked[0][0] == NATIVE and not asked[1]:
            return None  # the others only say how many have to be there: nobody waits for them
        group_id = f"{namespace}/{self._short[kind.name]}/{top[2]}"
        if kind.gang is not None:
            group_id += f"/{word_of(pod, kind.gang) or 'none'}"
        return _Found(group_id, kind, kind.name, top, api_version, uid)

    def _without_gang(
        self, member: Member, kind: Kind | None, name: str, top: Key | None, api_version: str = "", uid: str = ""
    ) -> _Found | None:
        """No owner makes a gang of it: a PodGroup or a label may, else it is by itself."""
        meta = member.pod.metadata
        if (group := self._ask_for_pod_group(member)) is not None:
            key, known = group
            if not known:
                return None
            if not asks_for_no_gang(key[0], self._thing(key)):
                return _Found(f"{meta.namespace}/{self._short[key[0]]}/{key[2]}", kind, name, key)
        if label := word_on(meta, GROUP):
            return _Found(f"{meta.namespace}/group/{label}", kind, name, None)
        if kind is None and name == "Pod":
            kind = self._kinds.get("Pod")
        return _Found(f"{meta.namespace}/pod/{meta.name}", kind, name, top, api_version, uid)

    def _ask_for_pod_group(self, member: Member) -> tuple[Key, bool] | None:
        """The PodGroup that a pod names, and whether it is known."""
        key = _pod_group_of(member.pod)
        if key is None:
            return None
        return key, self._known(member, key, ObjectRef(api_version="", kind=key[0], namespace=key[1], name=key[2]))

    def _known(self, member: Member, handle: Handle, wanted: ObjectRef) -> bool:
        """Whether it is there, or known not to be; else it is asked for."""
        member.via.append(handle)
        if handle in self._absent or (handle in self._named if isinstance(handle, tuple) else handle in self._things):
            return True
        self._wanted[handle] = wanted
        return False

    def _named_by_label(self, pod: Pod) -> tuple[Kind, Key] | None:
        for kind in self._by_label:
            assert kind.pods.owner is not None
            if name := word_of(pod, kind.pods.owner):
                return kind, (kind.name, pod.metadata.namespace, name)
        return None

    def _look_again(self, handle: Handle) -> None:
        """Pods whose chain leads there belong elsewhere now, perhaps."""
        if handle in self._things or handle in self._named or handle in self._absent:
            self._wanted.pop(handle, None)
        for uid in sorted(self._via.get(handle, ()), key=lambda one: _age(self._pods[one].pod.metadata)):
            self._settle(self._pods[uid])

    def _look_below(self, thing: Anything) -> None:
        """At all pods whose places follow from this object."""
        parent = self._parent(thing)
        self._look_again(thing.metadata.uid)
        self._look_again(_key(thing))
        if parent is not None:
            self._look_again(parent.uid)

    def _stop_looking(self, uid: str, handles: Iterable[Handle]) -> None:
        for handle in handles:
            lookers = self._via[handle]
            lookers.discard(uid)
            if not lookers:
                del self._via[handle]
                self._wanted.pop(handle, None)
                self._absent.discard(handle)

    # -- seats --------------------------------------------------------------------------------------------------------

    def _role_of(self, pod: Pod, found: _Found) -> tuple[str, int | None]:
        kind = found.kind
        if kind is None or kind.alone or found.top is None or found.top[0] != kind.name:
            together = found.top is not None and is_pod_group(found.top[0])
            alone = not together and word_on(pod.metadata, GROUP) is None
            return (ALONE, 0) if alone else (word_on(pod.metadata, ROLE) or ALONE, None)
        return role_and_index(pod, self._layout(kind), self._roles(found.top))

    def _part_of(self, member: Member, role: str) -> str:
        """As it was bound, else as somebody has said."""
        kept = kept_slot(member.pod.metadata) if member.pod.spec.node_name else None
        slot = self._remembered.get(member.uid) or (Slot(*kept) if kept else None)
        if slot is not None and slot.role.startswith(role + PART):
            member.part = slot.role.removeprefix(role)
        return member.part

    def _seat(self, member: Member) -> None:
        gang = self._gangs[member.gang_id]
        if member.pod.over:
            if _ended_well(member.pod):
                gang.ended[member.role] = gang.ended.get(member.role, 0) + 1
                member.ended = True
        elif not member.stranded:
            kept = kept_slot(member.pod.metadata)
            slot = self._remembered.pop(member.uid, None) or (Slot(*kept) if kept else None)
            ordinal = slot.ordinal if slot and slot.role == member.role else None
            size = next((one.count for one in self._roles(member.top) if one.name == member.role), None)
            other = self._only_counted(gang, Slot(member.role, ordinal)) if ordinal is not None else None
            if other is not None:
                self._unseat(other)
            gang.seats.setdefault(member.role, Seats()).sit(member.uid, member.index, size, ordinal)
            if other is not None:
                self._seat(other)
        self._touch(gang.id)

    def _only_counted(self, gang: Gang, slot: Slot) -> Member | None:
        """Who has a seat that somebody was bound as, and waits for a node itself: any other will do for it."""
        seats = gang.seats.get(slot.role)
        holder = self._pods.get(seats.holders.get(slot.ordinal, "")) if seats is not None else None
        bound = holder is None or holder.pod.spec.node_name or kept_slot(holder.pod.metadata) is not None
        return None if bound else holder

    def _unseat(self, member: Member) -> None:
        gang = self._gangs[member.gang_id]
        if member.ended:
            member.ended = False
            gang.ended[member.role] -= 1
            if not gang.ended[member.role]:
                del gang.ended[member.role]
        elif (seats := gang.seats.get(member.role)) is not None:
            seats.leave(member.uid)
            if seats.empty:
                del gang.seats[member.role]
        self._touch(gang.id)

    def _leave(self, member: Member) -> None:
        if not member.gang_id:
            return
        self._unseat(member)
        self._gangs[member.gang_id].pods.discard(member.uid)
        self._name(member, -1)
        self._release(member.gang_id, member.top)
        member.gang_id, member.role, member.index, member.top, member.kind_name = "", "", None, None, ""

    def _name(self, member: Member, step: int) -> None:
        """Count the PodGroup that it names, or that it names none, in its gang."""
        counts = self._gangs[member.gang_id].pod_groups
        key = _pod_group_of(member.pod) if step > 0 else member.pod_group
        member.pod_group = key if step > 0 else None
        counts[key] = counts.get(key, 0) + step
        if not counts[key]:
            del counts[key]
        if key is None:
            return
        sharing = self._naming.setdefault(key, set())
        before = len(sharing)
        (sharing.add if key in counts else sharing.discard)(member.gang_id)
        if len(sharing) != before:
            for gang_id in sharing:
                self._touch(gang_id)
        if not sharing:
            del self._naming[key]

    # -- gangs --------------------------------------------------------------------------------------------------------

    def _hold(self, gang_id: str, top: Key | None) -> None:
        gang = self._gangs.get(gang_id)
        if gang is None:
            gang = self._gangs[gang_id] = Gang(gang_id)
        gang.uses += 1
        if top is not None:
            ids = self._ids_of.setdefault(top, {})
            ids[gang_id] = ids.get(gang_id, 0) + 1
        self._touch(gang_id)

    def _release(self, gang_id: str, top: Key | None) -> None:
        gang = self._gangs[gang_id]
        gang.uses -= 1
        if top is not None:
            ids = self._ids_of[top]
            ids[gang_id] -= 1
            if not ids[gang_id]:
                del ids[gang_id]
            if not ids:
                del self._ids_of[top]
        self._touch(gang_id)
        if not gang.uses:
            del self._gangs[gang_id]

    def _touch(self, gang_id: str) -> None:
        self._changed.add(gang_id)
        self._built.pop(gang_id, None)

    def _touch_all(self, thing: Anything, old: Anything | None) -> None:
        """Gangs that this object says something about. Pods that are by themselves only ask for its words."""
        kind = self._kinds.get(_key(thing)[0])
        if old is None or kind is None or not kind.alone or not _same_words(old.metadata, thing.metadata):
            for gang_id in self._ids_of.get(_key(thing), ()):
                self._touch(gang_id)
        if is_pod_group(_key(thing)[0]) and (old is None or _says(old) != _says(thing)):
            for gang_id in self._naming.get(_key(thing), ()):
                self._touch(gang_id)
        if (parent := self._parent(thing)) is not None:
            for gang_id in self._ids_of.get(
                (kind_name(parent.api_version, parent.kind), *_key(thing)[1:2], parent.name), ()
            ):
                self._touch(gang_id)

    def _own_id(self, thing: Anything) -> str | None:
        """The gang that this object is, also without any pod: of a kind that is one, and not made by such a kind."""
        name, namespace, called = _key(thing)
        kind = self._kinds.get(name)
        above = _controller(thing.metadata)
        inside = above is not None and self._kinds.get(kind_name(above.api_version, above.kind)) is not None
        return None if kind is None or not kind.whole or inside else f"{namespace}/{self._short[name]}/{called}"

    def _parent(self, thing: Anything) -> Owner | None:
        """The owner that takes its roles from this object."""
        above = _controller(thing.metadata)
        wanted = self._parents_of.get(_key(thing)[0])
        return above if above and wanted == kind_name(above.api_version, above.kind) else None

    def _layout(self, kind: Kind) -> Kind:
        return (self._kinds.get(kind.roles_from) or kind) if kind.roles_from else kind

    def _thing(self, top: Key | None) -> Anything | None:
        """By name; the newest, while an older one of the same name is on its way out."""
        uids = self._named.get(top, ()) if top else ()
        return max((self._things[uid] for uid in uids), key=lambda one: _age(one.metadata), default=None)

    def _roles(self, top: Key | None) -> tuple[DeclaredRole, ...]:
        thing = self._thing(top)
        kind = self._kinds.get(top[0]) if top else None
        if thing is None or kind is None:
            return ()
        if kind.roles_from:
            children = self._children.get(thing.metadata.uid, ())
            described = max((self._things[uid] for uid in children), key=lambda one: _age(one.metadata), default=None)
            if described is None:
                return ()
            thing = described
        return self._declared_by(thing, self._layout(kind))

    def _declared_by(self, thing: Anything, kind: Kind) -> tuple[DeclaredRole, ...]:
        uid = thing.metadata.uid
        known = self._declared.get(uid)
        if known is None or known[0] is not thing:
            found = declared_by_job(thing) if kind.stop is StopHow.TARGET else declared_roles(kind, thing)
            known = self._declared[uid] = (thing, found)
        return known[1]

    def _places(self, thing: Anything | None) -> list[tuple[str, int, bool]]:
        """What the places of pods depend on, of what an owner declares."""
        kind = self._kinds.get(_key(thing)[0]) if thing else None
        if thing is None or kind is None or not (kind.roles or kind.stop is StopHow.TARGET):
            return []
        return [(one.name, one.per_copy, one.count == one.max == 1) for one in self._declared_by(thing, kind)]

    def _build(self, gang: Gang) -> Group:
        sample = gang.sample(self._pods)
        top = sample.top if sample else self._top_of(gang.id)
        kind = sample.kind if sample else self._kinds.get(top[0]) if top else None
        return build_group(
            gang, self._pods, sample, top, kind, self._thing(top), self._roles(top), self._named_pod_group(gang)
        )

    def _named_pod_group(self, gang: Gang) -> NamedPodGroup | None:
        """The one that all its pods name."""
        if len(gang.pod_groups) != 1 or (key := next(iter(gang.pod_groups))) is None:
            return None
        others = sorted(self._naming[key] - {gang.id})
        return NamedPodGroup(key[0], key[2], self._thing(key), tuple(others))

    def pod_groups(self, kind: str) -> Iterator[tuple[Anything, tuple[str, ...]]]:
        """All of a kind that pods name, with the gangs of these pods."""
        for key, gangs in self._naming.items():
            if key[0] == kind and (thing := self._thing(key)) is not None:
                yield thing, tuple(sorted(gangs))

    def _top_of(self, gang_id: str) -> Key | None:
        """Of a gang without pods: its own object."""
        namespace, short, name = gang_id.split("/")
        kind = next(full for full, word in self._short.items() if word == short)
        return kind, namespace, name


def _key(thing: Anything) -> Key:
    return kind_name(thing.api_version, thing.kind), thing.metadata.namespace, thing.metadata.name


def _controller(meta: Meta) -> Owner | None:
    return next((one for one in meta.owner_references or () if one.controller), None)


def _age(meta: Meta) -> tuple[str, str]:
    return meta.creation_timestamp or "", meta.uid


def _same_words(old: Meta, new: Meta) -> bool:
    return (
        old.labels == new.labels and old.annotations == new.annotations and old.owner_references == new.owner_references
    )


def _pod_group_of(pod: Pod) -> Key | None:
    named = named_by(pod)
    return (named[0], pod.metadata.namespace, named[1]) if named else None


def _says(pod_group: Anything) -> tuple[object, ...]:
    """What gangs depend on."""
    kind, meta = _key(pod_group)[0], pod_group.metadata
    return least_members(kind, pod_group), wishes(kind, pod_group), meta.labels, meta.annotations


def _ended_well(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded"
