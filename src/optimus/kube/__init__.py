"""A thin client of the Kubernetes API.

    config, kubeconfig, credentials, exec_plugin, trusting   which server, trusted how, as whom
    client, resources, decoding, errors, counting            requests; bytes to narrow structs; errors by name
    switchboard, line                                        connections: HTTP on sockets of our own
    reflecting, backing_off                                  a live copy of one kind, told as changes
    writing, events                                          binds, evictions, patches, events; outcomes as data
    election, blocking                                       one leader among rivals, and the guard of every write

Why: a scheduler lists, watches and binds all day; typed clients cost twenty to fifty times what this needs.
Owns: everything between this process and an API server.
Must not: know a word of scheduling, or import anything of Optimus.
"""

from optimus.kube.client import Client
from optimus.kube.config import Cluster, load
from optimus.kube.decoding import Meta
from optimus.kube.election import Election, Times
from optimus.kube.errors import KubeError
from optimus.kube.reflecting import Change, Reflector, What
from optimus.kube.resources import Resource
from optimus.kube.writing import Conflict, Done, Gone, Outcome, Refused, Unknown, Writer

__all__ = [
    "Change",
    "Client",
    "Cluster",
    "Conflict",
    "Done",
    "Election",
    "Gone",
    "KubeError",
    "Meta",
    "Outcome",
    "Reflector",
    "Refused",
    "Resource",
    "Times",
    "Unknown",
    "What",
    "Writer",
    "load",
]
