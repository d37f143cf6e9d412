"""Which pods that wait depend on which claims: when a volume changes, those who mean it are read again.

    claim ──► pods that name it          volume ──► its claim, claims that name it, claims of its class that wait
    class ──► its claims                 device ──► pods that name any, and work whose pods will

Why: on a cluster that works, claims and volumes change all the time, and nearly every pod mounts something; most wait
for none of it.
Owns: that index, of pods that are on no node, and who is to be read again, once a turn.
Must not: read pods or claims beyond their names and classes.
"""

from __future__ import annotations

from optimus.drivers.kube.first_consumers import claim_names, class_of, class_of_volume, waits_for_consumer
from optimus.drivers.kube.objects import PersistentVolume, Pod, VolumeClaim
from optimus.drivers.kube.volumes import Around


class Dependents:
    def __init__(self) -> None:
        self._claims_of: dict[str, tuple[str, ...]] = {}
        """By uid: the claims that a pod names."""
        self._pods_of: dict[str, set[str]] = {}
        """The other way round."""
        self._with_devices: set[str] = set()
        self._stale: set[str] = set()
        """Uids to be read again."""
        self._thought_of: set[str] = set()
        """Gangs that have no pods yet, and will claim devices."""
        self._devices_changed = False
        self._stale_classes: set[str] = set()
        self._stale_volumes: set[str] = set()

    def see(self, pod: Pod) -> None:
        """It waits for a node."""
        uid = pod.metadata.uid
        claims = tuple(f"{pod.metadata.namespace}/{name}" for name in claim_names(pod))
        if claims != self._claims_of.get(uid, ()):
            self.forget(uid)
            self._claims_of[uid] = claims
            for claim in claims:
                self._pods_of.setdefault(claim, set()).add(uid)
        if pod.spec.resource_claims:
            self._with_devices.add(uid)

    def think_of(self, gang: str) -> None:
        """It has no pods yet, and they will claim devices."""
        self._thought_of.add(gang)

    def forget(self, uid: str) -> None:
        self._with_devices.discard(uid)
        for claim in self._claims_of.pop(uid, ()):
            pods = self._pods_of[claim]
            pods.discard(uid)
            if not pods:
                del self._pods_of[claim]

    # -- what changes -------------------------------------------------------------------------------------------------

    def all_changed(self) -> None:
        self._stale |= self._claims_of.keys()
        self.device_changed()

    def claim_changed(self, key: str) -> None:
        self._stale |= self._pods_of.get(key, set())

    def device_changed(self) -> None:
        """Which one a pod means may only stand in its status: all that name any."""
        self._stale |= self._with_devices
        self._devices_changed = True

    def class_changed(self, name: str) -> None:
        self._stale_classes.add(name)

    def volume_changed(self, *versions: PersistentVolume | None) -> None:
        """As it was, and as it is."""
        for one in versions:
            if one is not None:
                ref = one.spec.claim_ref
                self._stale_volumes.add(one.metadata.name)
                self._stale_classes.add(class_of_volume(one))
                if ref is not None:
                    self.claim_changed(f"{ref.namespace}/{ref.name}")

    # -- who is to be read again --------------------------------------------------------------------------------------

    def take_stale(self, around: Around) -> set[str]:
        if self._stale_classes or self._stale_volumes:
            for key in self._pods_of:
                claim = around.claims.get(key)
                if claim is not None and self._means(claim, around):
                    self.claim_changed(key)
        stale, self._stale = self._stale, set()
        self._stale_classes.clear()
        self._stale_volumes.clear()
        return stale

    def take_thought_of(self) -> set[str]:
        """Gangs without pods for which devices have changed."""
        if not self._devices_changed:
            return set()
        self._devices_changed = False
        gangs, self._thought_of = self._thought_of, set()
        return gangs

    def _means(self, claim: VolumeClaim, around: Around) -> bool:
        """Whether what is known of a claim depends on a class or a volume that has changed."""
        if claim.spec.volume_name:
            return claim.spec.volume_name in self._stale_volumes
        name = class_of(claim)
        return name in self._stale_classes and (name not in around.classes or waits_for_consumer(claim, around.classes))
