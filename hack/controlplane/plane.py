"""A control plane: etcd and the API server, and beside them what is asked for.

    with ControlPlane(folder, controllers=True, kwok=True) as plane:
        plane.address, plane.token("admin"), plane.kubeconfig("admin")
        plane.api_server.kill(); plane.start_again(plane.api_server)      # etcd stays
        plane.etcd.pause(); …; plane.etcd.go_on()

Client limits of the programs of Kubernetes are taken off (their defaults of 20 to 50 requests a second would be what is
measured), and so is the server's own throttling where `fair` is False.
"""

from __future__ import annotations

import shutil
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from hack.controlplane.credentials import ADMIN, Credentials
from hack.controlplane.processes import Process, free_ports
from hack.controlplane.programs import program

STAGES = Path(__file__).with_name("stages.yaml")
CONTROLLERS = (
    "deployment-controller",
    "disruption-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "resourcequota-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
)
NODE_CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller")
"""For real nodes only: to them, nodes that only seem to be there seem to be dead."""
NODE_HEALTH = ("--node-monitor-period=1s", "--node-monitor-grace-period=12s")
"""A node that is silent is known to be so after seconds, as its kubelet reports every other second."""
GANG_CONTROLLERS = ("podgroup-protection-controller",)
GANG_GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
NO_LIMITS = ("--kube-api-qps=2000", "--kube-api-burst=4000")


class ControlPlane:
    def __init__(
        self,
        folder: Path,
        *,
        controllers: bool = False,
        kwok: bool = False,
        users: Mapping[str, str] | None = None,
        durable: bool = False,
        fair: bool = False,
        gang_api: bool = False,
        detached: bool = False,
        real_nodes: bool = False,
        api_server_flags: tuple[str, ...] = (),
    ) -> None:
        """`users`: name -> groups. `durable`: etcd writes through to the disk. `fair`: the server's own throttling is
        on. `gang_api`: the native PodGroup, an alpha of this version. `detached`: outlives this process. `real_nodes`:
        looks after nodes that can die, and is known to their kubelets."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._detached = detached
        self.credentials = Credentials(folder)
        self.credentials.make(dict(users or {}))
        client, peer, secure = free_ports(3)
        self.address = f"https://127.0.0.1:{secure}"
        self.etcd = self._process("etcd", *_etcd_flags(folder, client, peer, durable=durable))
        flags = _api_server_flags(self.credentials, client, secure, fair=fair, gang_api=gang_api)
        if real_nodes:
            flags += _as_client_of_kubelets(self.credentials)
        self.api_server = self._process("kube-apiserver", *flags, *api_server_flags)
        self.beside: dict[str, Process] = {}
        self._wanted = (*(("kube-controller-manager",) if controllers else ()), *(("kwok",) if kwok else ()))
        self._gang_api, self._real_nodes = gang_api, real_nodes

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        try:
            self.etcd.start()
            self.start_again(self.api_server)
            for name in self._wanted:
                {"kube-controller-manager": self.start_controllers, "kwok": self.start_kwok}[name]()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for one in (*reversed(self.beside.values()), self.api_server, self.etcd):
            one.stop()

    def start_again(self, process: Process) -> None:
        process.start()
        if process is self.api_server:
            process.wait_until(self.is_ready)

    def is_ready(self) -> bool:
        """Whether the API server answers, with all its own objects in place."""
        try:
            return self.get("/readyz") == b"ok"
        except OSError:
            return False

    def get(self, path: str, user: str = ADMIN) -> bytes:
        request = urllib.request.Request(self.address + path)
        request.add_header("Authorization", f"Bearer {self.token(user)}")
        trusted = ssl.create_default_context(cafile=str(self.credentials.certificate))
        with urllib.request.urlopen(request, timeout=10, context=trusted) as response:
            body: bytes = response.read()
            return body

    def token(self, user: str = ADMIN) -> str:
        return self.credentials.tokens[user]

    def kubeconfig(self, user: str = ADMIN) -> Path:
        return self.credentials.kubeconfig(self.address, user)

    def kubectl(self, *words: str) -> tuple[str, ...]:
        """The words of a call of kubectl against this plane."""
        return (str(program("kubectl")), f"--kubeconfig={self.kubeconfig()}", *words)

    # -- beside the server ----------------------------------------------------------------------------------------

    def start_controllers(self) -> Process:
        """Those of Kubernetes that tests need."""
        key, certificate = self.credentials.key, self.credentials.certificate
        # Jobs get PodGroups, and PodGroups can be deleted: the server puts a finalizer on them
        gangs = [f"{GANG_GATES},WorkloadWithJob=true"] if self._gang_api else []
        beside = (*(NODE_CONTROLLERS if self._real_nodes else ()), *(GANG_CONTROLLERS if self._gang_api else ()))
        names = (*CONTROLLERS, *beside)
        return self._beside(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig()}",
            f"--controllers={','.join(names)}",
            f"--service-account-private-key-file={key}",
            f"--root-ca-file={certificate}",
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            "--concurrent-job-syncs=20",
            *(NODE_HEALTH if self._real_nodes else ()),
            *gangs,
            *NO_LIMITS,
            *_insecure_port(),
        )

    def start_scheduler(self, config: str = "", name: str = "scheduler") -> Process:
        """The stock scheduler; `config`: a KubeSchedulerConfiguration without its client connection. `name`: of the
        file that it is written to; several may run."""
        path = self.folder / f"{name}.yaml"
        head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        connection = f"clientConnection: {{kubeconfig: {self.kubeconfig()}, qps: 2000, burst: 4000}}\n"
        path.write_text(head + connection + "leaderElection: {leaderElect: false}\n" + config)
        gates = [GANG_GATES] if self._gang_api else []
        return self._beside("kube-scheduler", f"--config={path}", *gates, *_insecure_port())

    def start_kwok(self) -> Process:
        """Nodes and pods that only seem to run: all pods on nodes annotated `kwok.x-k8s.io/node: fake`."""
        return self._beside(
            "kwok",
            f"--kubeconfig={self.kubeconfig()}",
            f"--config={STAGES}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=0",
            "--enable-crds=",
        )

    def _beside(self, name: str, *flags: str) -> Process:
        self.beside[name] = started = self._process(name, *flags)
        started.start()
        return started

    def _process(self, name: str, *flags: str) -> Process:
        return Process(name, [str(program(name)), *flags], self.folder, detached=self._detached)


def _etcd_flags(folder: Path, client: int, peer: int, *, durable: bool) -> list[str]:
    data = folder / "etcd"
    shutil.rmtree(data, ignore_errors=True)
    return [
        f"--data-dir={data}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        "--log-level=warn",
        f"--unsafe-no-fsync={'false' if durable else 'true'}",
        "--quota-backend-bytes=4294967296",
    ]


def _api_server_flags(who: Credentials, client: int, secure: int, *, fair: bool, gang_api: bool) -> list[str]:
    unthrottled = [
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
    ]
    gangs = [GANG_GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"]
    return [
        f"--etcd-servers=http://127.0.0.1:{client}",
        f"--secure-port={secure}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={who.certificate}",
        f"--tls-private-key-file={who.key}",
        f"--client-ca-file={who.certificate}",
        f"--token-auth-file={who.token_file}",
        "--authorization-mode=RBAC",
        "--anonymous-auth=false",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={who.key}",
        f"--service-account-signing-key-file={who.key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--kubelet-preferred-address-types=InternalIP",
        *([] if fair else unthrottled),
        *(gangs if gang_api else []),
    ]


def _as_client_of_kubelets(who: Credentials) -> list[str]:
    return [f"--kubelet-client-certificate={who.certificate}", f"--kubelet-client-key={who.key}"]


def _insecure_port() -> list[str]:
    return [f"--secure-port={free_ports(1)[0]}", "--bind-address=127.0.0.1"]
