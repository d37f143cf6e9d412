"""The pod template of a job: what Kubernetes calls PodTemplateSpec, as far as one machine can do something with it.

Why: the file that `kubectl apply` takes must run here as well, so everything Kubernetes knows may be written.
Owns: the fields that are used (command, environment, folder, resources, node rules), those that are known and passed
      on untouched, and those that cannot mean anything without a cluster.
Must not: choose between what a template says and what the job says itself; that is `optimus.api.building.jobs`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from optimus.api.specs.clusters import TolerationSpec
from optimus.api.specs.fields import Count, Cpu, Memory, Spec, Text, complain
from optimus.api.specs.job_fields import Variable, Word, Words
from optimus.model import units

NVIDIA_GPU = "nvidia.com/gpu"
MIG_PREFIX = "nvidia.com/mig-"


def _words(text: str) -> list[str]:
    return text.split()


KNOWN_CONTAINER_FIELDS = _words("""
    imagePullPolicy lifecycle livenessProbe ports readinessProbe resizePolicy restartPolicy restartPolicyRules
    securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty volumeDevices
    volumeMounts""")
KNOWN_POD_FIELDS = _words("""
    activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks
    ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets
    initContainers nodeName os overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims
    resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount
    serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds
    topologySpreadConstraints volumes""")

KNOWN_TEMPLATE_FIELDS: list[str] = []
KNOWN_METADATA_FIELDS = _words("""
    creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation managedFields
    ownerReferences resourceVersion selfLink uid""")


class OpenSpec(Spec):
    """A mapping of Kubernetes: what is not named here is passed on."""

    model_config = ConfigDict(extra="allow")

    def passed_on(self) -> list[str]:
        return list(self.model_extra or {})


Anything = Annotated[Any, WithJsonSchema({})]


class EnvVarSpec(Spec):
    name: Variable
    value: Word = ""
    value_from: Anything = None


class AmountsSpec(OpenSpec):
    cpu: Cpu | None = None
    memory: Memory | None = None
    gpu: Annotated[Count | None, Field(alias=NVIDIA_GPU)] = None

    def mig(self) -> dict[str, Any]:
        return {
            key.removeprefix(NVIDIA_GPU[:-3]): value
            for key, value in (self.model_extra or {}).items()
            if key.startswith(MIG_PREFIX)
        }


class ResourcesSpec(OpenSpec):
    """As in Kubernetes: a request that is not written is the limit, and no request is above its limit."""

    requests: AmountsSpec = AmountsSpec()
    limits: AmountsSpec = AmountsSpec()

    @model_validator(mode="after")
    def _gpus_agree(self) -> ResourcesSpec:
        asked, most = self.requests.gpu, self.limits.gpu
        if asked is not None and most is not None and asked != most:
            raise complain(f"{NVIDIA_GPU} is {asked} under requests and {most} under limits", "they must be equal")
        return self

    @model_validator(mode="after")
    def _limits_leave_room(self) -> ResourcesSpec:
        for name, told in (("cpu", units.format_cpu), ("memory", units.format_memory)):
            asked, most = getattr(self.requests, name), getattr(self.limits, name)
            if asked is not None and most is not None and asked > most:
                message = f"{name} is {told(asked)} under requests and {told(most)} under limits"
                raise complain(message, "a limit is at least what is asked for")
        return self

    def said(self, name: str) -> tuple[str, int] | None:
        """`requests` or `limits`, and the amount that is written there."""
        for home in ("requests", "limits"):
            amount = getattr(getattr(self, home), name)
            if amount is not None:
                return home, amount
        return None


class ContainerSpec(OpenSpec):
    name: Text | None = None
    image: Text | None = None
    """Accepted, and not used on one machine."""
    command: Words | None = None
    args: Words | None = None
    env: tuple[EnvVarSpec, ...] | None = None
    env_from: Anything = None
    working_dir: Word | None = None
    resources: ResourcesSpec = ResourcesSpec()


class PodTolerationSpec(TolerationSpec):
    operator: Text = "Equal"
    toleration_seconds: Count | None = None

    @model_validator(mode="after")
    def _known_operator(self) -> PodTolerationSpec:
        if self.operator not in ("Equal", "Exists"):
            raise complain(f"operator must be Equal or Exists, not {self.operator}")
        if self.operator == "Exists" and self.value:
            raise complain("operator Exists takes no value")
        if not self.key and self.operator == "Equal":
            raise complain("operator Equal needs a key", "write operator: Exists to tolerate everything")
        return self


class PodSpec(OpenSpec):
    containers: tuple[ContainerSpec, ...]
    node_selector: dict[Text, Text] | None = None
    tolerations: tuple[PodTolerationSpec, ...] | None = None

    @model_validator(mode="after")
    def _something_runs(self) -> PodSpec:
        if not self.containers:
            raise complain("containers is empty: nothing would run")
        return self


class PodTemplateSpec(OpenSpec):
    metadata: dict[str, Anything] | None = None
    spec: PodSpec
