"""Files with errors. A comment `# <-- …` stands on each line that has one and says a part of its message.

Every such line must be reported, and no other. A line with two errors has two comments.
"""

from __future__ import annotations

WORLD = """\
cluster: [{name: n, count: 2, gpus: 8, cpu: 32, memory: 64Gi, racks: 2}]
queues: [{name: q}, {name: top}, {name: leaf, parent: top}]
"""
"""A small world that is right; two lines."""

TEXT = {
    "a list that is never closed": """\
queues: [{name: a}, {name: b
workloads: []   # <-- is not YAML
""",
    "tabs": """\
queues:
\t- {name: a}   # <-- cannot start any token
""",
    "a colon in plain text": """\
description: this: is not fine   # <-- mapping values are not allowed
""",
    "a key twice in a record": """\
queues:
  - name: a
    rank: 1
    rank: 2   # <-- key rank is there twice; first in line 3
""",
    "a section twice": """\
queues: [{name: a}]
queues: [{name: b}]   # <-- key queues is there twice; first in line 1
""",
    "a document that is no mapping": """\
- 1   # <-- a document must be a mapping
""",
    "an alias that stands for nothing": """\
queues:
  - *base   # <-- alias *base stands for nothing   # <-- must be a mapping
""",
    "an alias that contains itself": """\
queues: &all
  - *all   # <-- contains itself   # <-- must be a mapping
""",
    "a tag": """\
description: !!python/name:os.system run   # <-- is not allowed
""",
    "a key that is a list": """\
? [a, b]   # <-- a key must be text
: 1
""",
    "an unknown section": """\
worklods: []   # <-- unknown key worklods (did you mean workloads?)
""",
    "an unknown kind": """\
kind: Queu   # <-- unknown kind Queu (did you mean Queue?)
metadata: {name: a}
""",
    "too deep": f"""\
queues: {"[" * 80}{"]" * 80}   # <-- nested more than 64 levels
""",
    "a second document goes on after a broken one": """\
queues: [{name: a}
---   # <-- is not YAML
queues: [{name: b, rank: x}]   # <-- must be a number: x
---
queues: {name: c}   # <-- must be a list
""",
}

CLUSTER = {
    "negative and not a number": """\
cluster:
  nodes:
    - {name: a, gpus: -8}   # <-- must not be negative: -8
    - {name: b, cpu: .nan}   # <-- must be a finite number, not NaN
    - {name: c, memory: .inf}   # <-- must be a finite number
    - {name: d, gpus: {count: 2, memory: 80GB}}   # <-- did you mean 80G?
    - {name: e, gpus: 2000}   # <-- must be 0 to 1024
    - {name: f, count: 1000000000}   # <-- must be 0 to 100000
    - {name: g, gpus: {count: 1.5}}   # <-- must be a whole number: 1.5
    - {name: h, cpu: 99999999999999999999}   # <-- is too large
    - {name: i, cpu: 0.0001}   # <-- finer than thousandths of a CPU
""",
    "names": """\
cluster:
  nodes:
    - {gpus: 8}   # <-- name: is missing
    - {name: 7}   # <-- must be text, not 7 (write "7" in quotes)
    - {name: "a b"}   # <-- is not a name: a b
    - {name: x, count: 2}
    - {name: x-1}   # <-- node x-1 is there twice
    - {name: y, memry: 1Ti}   # <-- unknown key memry (did you mean memory?)
    - {name: z, labels: {fast: true}}   # <-- must be text, not true (write "true" in quotes)
    - just text   # <-- must be a mapping, not just text
""",
    "devices": """\
cluster:
  nodes:
    - name: a
      gpus: {count: 4, devices: [{model: A100}]}   # <-- count says 4, but 1 devices are listed
    - name: b
      gpus: {devices: [{index: 1}, {index: 1}]}   # <-- device index 1 is there twice
    - {name: c, gpus: {count: 2, unhealthy: [5]}}   # <-- unhealthy names device 5
    - {name: d, gpus: {count: 2, nvlinkGroups: 0}}   # <-- must be 1 to 1024: 0
    - {name: e, gpus: {count: 1, mig: {1g.5gb: -7}}}   # <-- must not be negative
    - {name: f, gpus: 1, foreign: {gpu: {3: 0.5}}}   # <-- there is no device 3
    - {name: j, gpus: 1, foreign: {gpu: {0: 1.5}}}   # <-- is too large: 1.5; at most 1
    - {name: g, taints: ["a=b:Never"]}   # <-- unknown effect 'Never'
    - {name: h, taints: ["a b"]}   # <-- cannot be read: a b
    - {name: i, assignable: maybe}   # <-- must be true or false, not maybe
""",
    "pools": """\
cluster: [{name: a, gpus: 1, pool: fast}]
pools:
  - {name: any}   # <-- any stands for all pools
  - {name: p, topologyLevels: [rack, rack]}   # <-- level rack is there twice
  - {name: r, topologyLevels: [host]}   # <-- host is always there
  - {name: s, placement: tight}   # <-- must be one of pack, spread, not tight
  - {name: t, placement: {batch: pack}}   # <-- unknown class batch
  - {name: u, interferenceLimit: 150%}   # <-- more than the whole
  - {name: fast}
  - {name: fast}   # <-- pool fast is there twice
""",
}

QUEUES = {
    "numbers": """\
queues:
  - {name: a, gpu: {guarantee: -1}}   # <-- must not be negative: -1
  - {name: b, gpu: {limit: lots}}   # <-- must be a number: lots
  - {name: c, gpu: {weight: 0.5}}   # <-- must be a whole number: 0.5
  - {name: d, memory: {limit: 10gb}}   # <-- did you mean 10G?
  - {name: e, gpu: 8}   # <-- must be a mapping, not 8
  - {name: f, gpu: {garantee: 8}}   # <-- did you mean guarantee?
  - {name: g, maxWait: 5 minutes}   # <-- cannot be read as a duration
  - {name: h, idleTimeout: -5m}   # <-- a duration cannot be negative: -5m
  - {name: i, rank: first}   # <-- must be a number
  - {name: j, gpu: {limit: 1e400}}   # <-- is too large: 1E+400
  - {name: k, maxRuntime: 0}   # <-- maxRuntime: must be more than 0: 0
""",
    "the tree": """\
queues:
  - {name: a, parent: b}   # <-- queues are below each other: a -> b -> a
  - {name: b, parent: a}   # <-- queues are below each other: b -> a -> b
  - {name: self, parent: self}   # <-- self -> self
  - {name: c, parent: nowhere}   # <-- there is no queue nowhere
  - {name: d}
  - {name: d}   # <-- queue d is there twice
""",
    "words": """\
queues:
  - {name: a, state: closed}   # <-- must be one of open, stopped, draining, not closed
  - {name: b, maxWaitAction: kill}   # <-- must be one of first, fail
  - {name: c, allowedClasses: [batch]}   # <-- unknown class batch
  - {name: d, maxRunTime: 1h}   # <-- did you mean maxRuntime?
  - {name: e, pools: [{gpu: {limit: 1}}]}   # <-- pools[0].name: is missing
""",
    "pools and resources": """\
cluster: [{name: n, gpus: 8, pool: a100}, {name: m, gpus: 1}]
queues:
  - {name: a, pools: [{name: b100, gpu: {limit: 1}}]}   # <-- there is no pool b100 (did you mean a100?)
  - {name: b, pools: [{name: a100, gpus: {limit: 1}}]}   # <-- unknown key gpus (did you mean gpu?)
  - {name: c, pools: [{name: a100, accelerators: {tpu-v4: {limit: 1}}}]}   # <-- no node has the accelerator tpu-v4
  - {name: f, accelerators: {tpu-v4: {limit: 1}}}   # <-- no node has the accelerator tpu-v4
  - {name: g, pools: [{name: a100, fpga: {limit: 1}}]}   # <-- (a named accelerator stands under accelerators: {fpga:
  - {name: h, mig-1g.5gb: {limit: 1}}   # <-- (a named accelerator stands under accelerators: {mig-1g.5gb:
  - {name: d, pools: [{name: a100}, {name: a100}]}   # <-- pool a100 is there twice
  - {name: e, pools: [{name: any, gpu: {limit: 1}}]}   # <-- a quota is for one pool; name it
""",
}

WORKLOADS = {
    "numbers": WORLD
    + """\
workloads:
  - {name: a, queue: q, gpu: -1}   # <-- must not be negative: -1
  - {name: b, queue: q, gpu: 1.5}   # <-- whole GPUs or a share below one: 1.5
  - {name: c, queue: q, gpu: many}   # <-- GPU must be a number: many
  - {name: d, queue: q, cpu: .nan}   # <-- must be a finite number
  - {name: e, queue: q, memory: 4000000000000Ti}   # <-- is too large
  - {name: f, queue: q, priority: high}   # <-- must be a number: high
  - {name: g, queue: q, gpu: {fraction: 1.2}}   # <-- more than 0 and at most 1: 1.2
  - {name: h, queue: q, gpu: {fraction: {request: 0.5, limit: 0.2}}}   # <-- the limit 0.2 is below the request 0.5
  - {name: i, queue: q, gpu: {fraction: 0.5, memory: 10Gi}}   # <-- or for GPU memory, not for both
  - {name: j, queue: q, gpu: {models: [{H100: fast}]}}   # <-- speed of H100: a ratio must be a number
  - {name: k, queue: q, expectedDuration: 1h2x}   # <-- cannot be read as a duration
  - {name: l, queue: q, deadline: "25:00"}   # <-- cannot be read as a time
  - {name: m, queue: q, deadline: 2026-13-01}   # <-- is not a date
  - {name: n, queue: q, accelerators: {tpu: -1}}   # <-- must not be negative
  - {name: o, queue: q, speedup: [1, -2]}   # <-- must not be negative
  - {name: p, queue: q, gpu: [1]}   # <-- GPU must be a number, not a list
  - {name: r, queue: q, gpu: {fraction: {request: 0.5, limit: 2}}}   # <-- is too large: 2; at most 1
  - {name: s, queue: q, gpu: {models: [A100, {H100: 0}]}}   # <-- gpu.models[1].speed: must be more than 0: 0x
  - {name: t, queue: q, gpu: {models: []}}   # <-- names no GPU model (leave models out where any model will do)
  - {name: u, queue: q, gpu: {models: {}}}   # <-- names no GPU model
  - {name: v, queue: q, accelerators: [fpga]}   # <-- must be a mapping, not a list
""",
    "sizes": WORLD
    + """\
workloads:
  - {name: a, queue: q, replicas: {min: 4, max: 2}}   # <-- the minimum 4 is above the maximum 2
  - {name: b, queue: q, replicas: {min: 1, max: 8, sizes: [1, 4, 2]}}   # <-- sizes must ascend
  - {name: c, queue: q, replicas: {min: 2, max: 8, sizes: [1, 2]}}   # <-- sizes outside 2 to 8: 1
  - {name: d, queue: q, replicas: {min: 3, max: 8, sizes: [4, 8]}}   # <-- the minimum 3 is not an allowed size
  - {name: e, queue: q, replicas: {min: 5, max: 7, sizes: powersOfTwo}}   # <-- no power of two from 5 to 7
  - {name: k, queue: q, replicas: {min: 3, max: 5, sizes: powersOfTwo}}   # <-- power of two (write min: 2 or min: 4)
  - {name: l, queue: q, replicas: {min: 0, max: 5, sizes: powersOfTwo}}   # <-- is not a power of two (write min: 1)
  - {name: f, queue: q, replicas: {sizes: odd}}   # <-- must be any, powersOfTwo or a list
  - {name: g, queue: q, replicas: 0}   # <-- must be at least 1: 0
  - {name: h, queue: q, replicas: 1000000}   # <-- is too large: 1000000; at most 100000
  - {name: i, queue: q, replicas: {min: 0, max: 4}}   # <-- needs no replica at all
  - {name: j, queue: q, replicas: {least: 1}}   # <-- unknown key least
""",
    "gangs": WORLD
    + """\
workloads:
  - name: a
    queue: q
    roles:
      - {name: ps}
      - {name: ps}   # <-- role ps is there twice
  - name: b
    queue: q
    groups:
      - {name: g, copies: {min: 3, max: 2}, gpu: 1}   # <-- the minimum 3 is above the maximum 2
  - name: c
    queue: q
    groups:
      - {name: g, groups: [{name: g}]}   # <-- group g is there twice
  - {name: d, queue: q, gpu: 1, roles: [{name: w}]}   # <-- gpu beside roles or groups
  - name: e   # <-- may grow to 1000000 replicas
    queue: q
    groups: [{name: g, copies: 1000, replicas: 1000}]
  - {name: f, queue: q, roles: [{replicas: 1}]}   # <-- roles[0].name: is missing
""",
    "words": WORLD
    + """\
workloads:
  - {name: a, queue: q, class: batch}   # <-- must be one of interactive, unattended, inference
  - {name: b, queue: q, preemptible: maybe}   # <-- must be true, false, surplus or lent
  - {name: c, queue: q, onLoss: cry}   # <-- must be one of replace, restart
  - {name: d, queue: q, tolerations: [{key: a, effect: None}]}   # <-- unknown effect 'None'
  - {name: e, queue: q, topolgy: rack}   # <-- did you mean topology?
  - {name: f, queue: q, min_replicas: 2}   # <-- unknown key min_replicas
  - {name: g, queue: q, suspend: "yes"}   # <-- must be true or false, not yes
  - {name: h, queue: q, checkpoint: {every: 5m}}   # <-- unknown key every
  - {name: i, queue: q, checkpoint: true}   # <-- must be a mapping, not true
  - 17   # <-- must be a mapping, not 17
  - [a, b]   # <-- must be a mapping, not a list
  - null   # <-- must be a mapping, not nothing
""",
    "names that lead nowhere": WORLD
    + """\
workloads:
  - {name: a, queue: qq}   # <-- there is no queue qq (did you mean q?)
  - {name: b, queue: q, pools: [a100]}   # <-- there is no pool a100
  - {name: c, queue: q, topology: rak}   # <-- no pool it may use has a topology level rak
  - {name: d, queue: top}   # <-- queue top has queues below it and takes no work (submit to leaf)
  - {name: e, queue: q}
  - {name: e, queue: q}   # <-- workload default/e is there twice
  - {name: x, queue: q, count: 3}
  - {name: x-1, queue: q}   # <-- workload default/x-1 is there twice
  - {name: f, queue: nope, gpu: -1}   # <-- there is no queue nope   # <-- must not be negative
""",
    "running work": WORLD
    + """\
workloads:
  - {name: a, queue: q, gpu: 1, running: {on: n-7}}   # <-- there is no node n-7
  - {name: b, queue: q, gpu: 9, running: {on: n-0}}   # <-- has no 9 GPUs left
  - {name: c, queue: q, gpu: 1, running: {on: {node: n-0, devices: [8]}}}   # <-- node n-0 has no GPU 8
  - {name: d, queue: q, gpu: 2, running: {on: {node: n-0, devices: [0]}}}   # <-- 1 devices are named, a replica needs 2
  - {name: e, queue: q, replicas: 4, gpu: 1, running: {on: [n-0, n-1]}}   # <-- names 2 places for a gang of 4 replicas
  - {name: f, queue: q, gpu: 1, running: {on: n-0, since: 5m}}   # <-- since lies in the future
  - {name: g, queue: q, gpu: 1, running: {since: -5m}}   # <-- running.on: is missing
  - {name: h, queue: q, cpu: 64, running: {on: n-0}}   # <-- node n-0 has 32 CPUs left, a replica needs 64
  - {name: i, queue: q, gpu: 1, running: {on: n-0, since: -1m, lastCheckpoint: -2m}}   # <-- lies before the start
  - {name: j, queue: q, gpu: 1, running: {on: n-0, role: x}}   # <-- unknown key role
  - {name: k, queue: q, gpu: 1, running: {on: {node: n-0, role: x}}}   # <-- there is no role x
  - {name: l, queue: q, gpu: 1, submitted: 5m}   # <-- lies in the future
  - {name: m, queue: q, count: 3, replicas: 6, gpu: 1, running: {on: "n-*"}}   # <-- none of the 2 nodes has room
""",
}

STORIES = {
    "cycles": WORLD
    + """\
workloads: [{name: w, queue: q, roles: [{name: a}, {name: b}]}]
cycles:
  - {repeat: 3}
  - {advance: -5m}   # <-- cycle 4: advance: a duration cannot be negative
  - {advance: 5m, at: 10m}   # <-- say advance or at, not both
  - {at: -1h}   # <-- goes back in time
  - {finish: [ghost]}   # <-- there is no workload ghost
  - {fail: {nodes: [n-9]}}   # <-- there is no node n-9 (did you mean n-
  - {fail: {devices: {n-0: [12]}}}   # <-- node n-0 has no device 12
  - {fail: {replicas: {w: [0]}}}   # <-- w has several roles; say which
  - {fail: {replicas: {w: {a: [5]}}}}   # <-- there is no replica 5
  - {repeat: 0}   # <-- must be 1 to 10000: 0
  - {explode: now}   # <-- unknown key explode
  - {change: {queues: [{name: q, gpu: {limit: -4}}]}}   # <-- must not be negative: -4
  - {change: {queues: [{name: ghost}]}}   # <-- there is no queue ghost
  - {change: {queues: [{gpu: {limit: 4}}]}}   # <-- is missing its name
  - {remove: {queues: [ghost]}}   # <-- there is no queue ghost
  - {submit: [{name: w, queue: q}]}   # <-- workload default/w is there twice
  - {submit: [{name: v, queue: q, running: {on: n-0}}]}   # <-- starts out pending
  - {report: {checkpoint: {w: soon}}}   # <-- cannot be read as a duration
  - {add: {nodes: [{name: n-0}]}}   # <-- node n-0 is there twice
""",
    "a pool that nodes name": """\
cluster: [{name: n, gpus: 1, pool: a}, {name: m, gpus: 1}]
cycles:
  - {remove: {pools: [a]}}   # <-- cycle 1: remove.pools: pool a stays while nodes say pool: a
  - {remove: {nodes: [n], pools: [a]}}
""",
    "not cycles": "cycles: often   # <-- must be a number or a list of cycles\n",
    "too many cycles": "cycles: 100000   # <-- must be 0 to 10000: 100000\n",
    "settings": """\
start: tomorrow   # <-- cannot be read as a time
seed: -1   # <-- must not be negative
budget: {passes: x, sarts: 3}   # <-- must be a number: x   # <-- unknown key sarts (did you mean starts?)
between: {slowStop: 1}   # <-- must be true or false, not 1
settings: {hold: 2 h}   # <-- cannot be read as a duration
policy: [fifo]   # <-- must be text, not a list
""",
    "expectations": WORLD
    + """\
workloads: [{name: w, queue: q}, {name: w, namespace: other, queue: q}, {name: v, queue: q}]
expect:
  workloads:
    v: runing   # <-- is neither a state nor a reason: runing (did you mean running?)
    ghost: running   # <-- there is no workload ghost
    default/w: {state: runs}   # <-- must be one of running
    other/w: {reason: NoRom}   # <-- is not a reason: NoRom (did you mean NoRoom?)
    other/*: {evicted: sometimes}   # <-- must be never, true, a cycle or a list of cycles
    "*/v": {evicted: 0}   # <-- cycles count from 1
    "v*": {nodes: [n-5]}   # <-- there is no node n-5
    "*": {replicas: {min: 3, max: 1}}   # <-- min 3 is above max 1
  queues:
    ghost: {running: 1}   # <-- there is no queue ghost
    q: {share: {gpu: -1}}   # <-- must not be negative
  nodes:
    ghost: empty   # <-- there is no node ghost
  plan: {actions: {Strat: 1}}   # <-- there is no action Strat (did you mean Start?)
  typo: {}   # <-- unknown key typo
""",
    "one name, two workloads": WORLD
    + """\
workloads: [{name: w, namespace: a, queue: q}, {name: w, namespace: b, queue: q}]
expect: {workloads: {w: pending}}   # <-- w is the name of several workloads: a/w, b/w
""",
    "a plan word": "expect: {plan: emtpy}   # <-- must be empty, notEmpty, complete, incomplete or a mapping\n",
    "an announced error that is not there": """\
expect:
  errors: [no such thing]   # <-- this file should have an error that says: no such thing
""",
}

ALL = {**TEXT, **CLUSTER, **QUEUES, **WORKLOADS, **STORIES}
SUBJECTS = {"text": TEXT, "cluster": CLUSTER, "queues": QUEUES, "workloads": WORKLOADS, "stories": STORIES}
