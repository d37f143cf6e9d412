"""One real node: namespaces that hold it, containerd, and a kubelet that can be killed and started again.

    holder (unshare)
      └ process 1 of the node: its own /proc, its own /run, /var/lib and /var/log in memory
          ├ containerd ─ shims ─ containers
          └ kubelet

The programs have their compiled-in places (sockets of device plugins, logs of pods, data of CNI) for themselves: two
nodes on one machine do not meet, and nothing of it stays on the machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from hack.controlplane.processes import Process
from hack.controlplane.programs import program
from hack.controlplane.real_nodes.images import PAUSE
from hack.controlplane.real_nodes.machine import Place
from hack.controlplane.real_nodes.packages import PLACES, RealNodesError, where

OWN = ("/run", "/var/lib", "/var/log")
SOCKET = "/run/containerd/containerd.sock"
GPU = "nvidia.com/gpu"
LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
COMMAND_S = 60
FIRST_POD_ADDRESS = 16
_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_HOLD = f"""
set -e
read -r pid rest < /proc/self/stat
mount -t proc proc /proc
for place in {" ".join(OWN)}; do mount -t tmpfs -o mode=755 tmpfs "$place"; done
mkdir -p /run/lock /var/lib/kubelet
mount --bind "$2" /var/lib/kubelet
mount --make-rshared /
echo "$pid" > "$1.new"
mv "$1.new" "$1"
tail -f /dev/null &
wait
"""
"""Its number outside is read before /proc is changed. The kubelet has its data where it always has: names of sockets
must not be long. A shell that waits also takes leave of orphans."""
_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Where the score of a process must not be lowered, no sandbox would start otherwise.
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    BinaryName = "{runc}"
    SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


class InNode(Process):
    """A program in the namespaces of a node, and still a child of ours with a number that we know."""

    def __init__(self, name: str, words: Sequence[str], folder: Path, node: Node) -> None:
        environment = {"PATH": os.environ.get("PATH", "") + os.pathsep + PLACES}
        super().__init__(name, words, folder, environment=environment)
        self._node = node

    def start(self) -> None:
        """From a thread: only it, and what it starts, goes into the PID namespace. No process may be moved into one,
        and a death signal would follow the thread; here the namespace ends what is in it."""
        failed: list[BaseException] = []

        def begin() -> None:
            try:
                _enter(self._node.pid, "pid", _CLONE_NEWPID)
                super(InNode, self).start()
            except BaseException as error:  # noqa: BLE001 - told where it was asked for
                failed.append(error)

        starting = threading.Thread(target=begin)
        starting.start()
        starting.join()
        if failed:
            raise failed[0]

    def before(self) -> None:
        _enter(self._node.pid, "mnt", _CLONE_NEWNS)
        os.chdir("/")


class Node:
    def __init__(
        self, name: str, place: Place, ordinal: int, folder: Path, kubeconfig: Path, authority: Path, *, detached: bool
    ) -> None:
        """`authority`: the certificate by which the kubelet knows the API server."""
        self.name, self.folder = name, folder
        self._place = place
        self._held = folder / "holder"
        self.address = place.address(ordinal + 1)
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_hidden(folder, program("kubelet"))
        hold = [where("unshare"), "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _HOLD, "sh"]
        data = folder / "kubelet"
        data.mkdir(exist_ok=True)
        words = [*hold, str(self._held), str(data)]
        self.holder = Process(name, words, folder.parent, detached=detached, inherits=(place.held.fileno(),))
        config = folder / "containerd.toml"
        config.write_text(
            _CONTAINERD.format(
                folder=folder,
                socket=SOCKET,
                pause=PAUSE,
                runc=where("runc"),
                plugins=Path(where("host-local")).parent,
            )
        )
        self.containerd = InNode(f"{name}-containerd", [where("containerd"), f"--config={config}"], folder.parent, self)
        words = [
            str(program("kubelet")),
            f"--config={folder / 'kubelet.json'}",
            f"--kubeconfig={kubeconfig}",
            f"--cert-dir={folder / 'pki'}",
            f"--hostname-override={name}",
            f"--node-ip={self.address}",
            f"--node-labels={','.join(f'{key}={value}' for key, value in LABELS.items())}",
        ]
        self.kubelet = InNode(f"{name}-kubelet", words, folder.parent, self)
        self._authority = authority
        self._first = FIRST_POD_ADDRESS + ordinal * 100

    @property
    def pid(self) -> int:
        """Of process 1 of the node, as it is called outside."""
        return int(self._held.read_text())

    def start(self, archive: Path) -> None:
        """Until containerd answers and has the images; the kubelet is on its way."""
        self._write_settings(self._place.make_cgroup(self.name))
        self._held.unlink(missing_ok=True)
        self.holder.start()
        self.holder.wait_until(self._held.exists)
        self.containerd.start()
        self.containerd.wait_until(lambda: self.run("ctr", "version").returncode == 0)
        done = self.run("ctr", "--namespace=k8s.io", "images", "import", str(archive))
        if done.returncode:
            raise RealNodesError(f"{self.name} does not take the images: {done.stderr.strip()}")
        self._write_again()
        self.kubelet.start()

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A command in the node."""
        inside = [where("nsenter"), f"--target={self.pid}", "--mount", "--pid", "--wd=/", where(name), *words]
        try:
            return subprocess.run(inside, capture_output=True, text=True, check=False, timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            raise RealNodesError(f"{name} in {self.name} did not end within {COMMAND_S} s") from None

    def stop(self) -> None:
        """All of it at once, as if the power were cut. The API server still has the node."""
        for one in (self.holder, self.containerd, self.kubelet):
            one.kill()

    def _write_again(self) -> None:
        """For people: a script that starts the kubelet after it was killed."""
        inside = [where("nsenter"), f"--target={self.pid}", "--mount", "--pid", "--wd=/", *self.kubelet.words]
        script = self.folder / "start-kubelet"
        script.write_text(f"#!/bin/sh\nsetsid {shlex.join(inside)} >> {shlex.quote(str(self.kubelet.log))} 2>&1 &\n")
        script.chmod(0o755)

    def _write_settings(self, cgroup: str) -> None:
        """Of the kubelet and of CNI. Nothing is evicted for want of disk: that would be the machine's, not a node's."""
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "healthzBindAddress": self.address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self._authority)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "failCgroupV1": False,
            "failSwapOn": False,
            "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%", "memory.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 8,
            "resolvConf": "",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        }
        (self.folder / "kubelet.json").write_text(json.dumps(kubelet, indent=1))
        network = {
            "cniVersion": "1.0.0",
            "name": "rig",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": self._place.bridge,
                    "isDefaultGateway": True,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [
                            [
                                {
                                    "subnet": f"{self._place.address(0)}/24",
                                    "rangeStart": self._place.address(self._first),
                                    "rangeEnd": self._place.address(self._first + 99),
                                    "gateway": self._place.address(1),
                                }
                            ]
                        ],
                    },
                }
            ],
        }
        (self.folder / "cni").mkdir(exist_ok=True)
        (self.folder / "cni" / "rig.conflist").write_text(json.dumps(network, indent=1))


def _enter(pid: int, kind: str, flag: int) -> None:
    with open(f"/proc/{pid}/ns/{kind}", "rb") as namespace:
        if _LIBC.setns(namespace.fileno(), flag):
            raise OSError(ctypes.get_errno(), f"cannot enter the {kind} namespace of process {pid}")


def _refuse_hidden(*needed: Path) -> None:
    for path in needed:
        for place in OWN:
            if path.is_relative_to(place):
                raise RealNodesError(f"{path} is below {place}, which a node has for itself: use another folder")
