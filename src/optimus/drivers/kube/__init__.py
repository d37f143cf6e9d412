"""The body on Kubernetes: pods, nodes and queues of a real API server become observations; plans become binds.

    objects ──► requests, rules, nodes ──► mirror ──► engine ──► acting ──► binds, evictions, status, events
                        grouping ──────────┘

Why: the way to grow beyond one machine; the brain is the same.
Owns: how objects of Kubernetes are read as nodes, queues and workloads, and how a plan is carried out there.
Must not: decide who runs where; talk HTTP itself (`optimus.kube` does).
"""
