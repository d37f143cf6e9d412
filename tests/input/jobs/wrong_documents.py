"""UnifiedJobs with something wrong, and the exact words that their authors read.

Of a spec: the path, what is wrong, what to do. Of a whole document: with line and column.
"""

# ruff: noqa: E501 - the words are shown as they are, in one line

from __future__ import annotations

TYPES_AND_COUNTS: dict[str, tuple[str, str]] = {
    "an unknown field": (
        "{command: x, quue: vision}",
        "spec.quue: unknown key quue (did you mean queue?)",
    ),
    "an unknown field inside": (
        "{command: x, replicaSpec: {minReplica: 2}}",
        "spec.replicaSpec.minReplica: unknown key minReplica (did you mean minReplicas?)",
    ),
    "a known type that does not run yet": (
        "{command: x, jobType: HorovodElastic}",
        "spec.jobType: this version cannot run HorovodElastic jobs (it runs Job, PyTorchElastic and Interactive)",
    ),
    "an array of another type": (
        "{command: x, jobType: PyTorchElastic, arraySize: 3}",
        "spec.arraySize: a PyTorchElastic job cannot be an array (leave arraySize out, or write jobType: Job)",
    ),
    "a type nobody knows": (
        "{command: x, jobType: interactve}",
        "spec.jobType: there is no job type interactve (did you mean Interactive?)",
    ),
    "a type in small letters": (
        "{command: x, jobType: job}",
        "spec.jobType: there is no job type job (did you mean Job?)",
    ),
    "a minimum above the maximum": (
        "{command: x, replicaSpec: {minReplicas: 5, maxReplicas: 2}}",
        "spec.replicaSpec.minReplicas: the minimum 5 is above the maximum 2",
    ),
    "the same in short": (
        "{command: x, replicas: {min: 5, max: 2}}",
        "spec.replicas: the minimum 5 is above the maximum 2",
    ),
    "a wish above the maximum": (
        "{command: x, replicaSpec: {minReplicas: 1, maxReplicas: 4, desiredReplicas: 8}}",
        "spec.replicaSpec.desiredReplicas: 8 lies outside minReplicas to maxReplicas: 1 to 4",
    ),
    "a wish below the minimum": (
        "{command: x, replicaSpec: {minReplicas: 4, desiredReplicas: 2}}",
        "spec.replicaSpec.desiredReplicas: 2 lies outside minReplicas to maxReplicas: 4 to 4",
    ),
    "no replica": (
        "{command: x, replicaSpec: {minReplicas: 0}}",
        "spec.replicaSpec.minReplicas: must be 1 to 100000: 0",
    ),
    "no replica in short": (
        "{command: x, replicas: 0}",
        "spec.replicas: must be at least 1: 0",
    ),
    "a minimum that is no power of two": (
        "{command: x, replicaSpec: {minReplicas: 3, maxReplicas: 8, sizes: powersOfTwo}}",
        "spec.replicaSpec.minReplicas: the minimum 3 is not a power of two (write minReplicas: 2 or minReplicas: 4)",
    ),
    "sizes that leave the bounds": (
        "{command: x, replicaSpec: {minReplicas: 1, maxReplicas: 4, sizes: [1, 2, 8]}}",
        "spec.replicaSpec.sizes: sizes outside 1 to 4: 8",
    ),
    "an array of nothing": (
        "{command: x, arraySize: 0}",
        "spec.arraySize: must be 1 to 100000: 0",
    ),
    "an array that is too large": (
        "{command: x, arraySize: 100001}",
        "spec.arraySize: must be 1 to 100000: 100001",
    ),
    "an array that is no number": (
        "{command: x, arraySize: many}",
        "spec.arraySize: this must be a number: many (write a whole number such as 4)",
    ),
}

INTERACTIVE: dict[str, tuple[str, str]] = {
    "an interactive array": (
        "{command: bash, jobType: Interactive, arraySize: 4}",
        "spec.arraySize: an Interactive job cannot be an array (leave arraySize out, or write jobType: Job)",
    ),
    "an interactive gang": (
        "{command: bash, jobType: Interactive, replicaSpec: {minReplicas: 2}}",
        "spec.replicaSpec.minReplicas: an Interactive job runs as one replica and cannot need 2 (write jobType: Job)",
    ),
    "an interactive gang in short": (
        "{command: bash, jobType: Interactive, replicas: 2}",
        "spec.replicas: an Interactive job runs as one replica and cannot need 2 (write jobType: Job)",
    ),
    "a class that contradicts the type": (
        "{command: bash, jobType: Interactive, class: unattended}",
        "spec.class: is unattended, but jobType is Interactive (leave class out, or write jobType: Job)",
    ),
    "a class nobody knows": (
        "{command: bash, class: batch}",
        "spec.class: must be one of interactive, unattended, inference, not batch",
    ),
}

COMMANDS: dict[str, tuple[str, str]] = {
    "nothing to run": (
        "{queue: vision}",
        "spec.command: is missing: there is neither command nor template, so nothing would run (write command: python train.py)",
    ),
    "an empty list": (
        "{command: []}",
        "spec.command: names no program (write [python, train.py] or python train.py)",
    ),
    "empty text": (
        '{command: ""}',
        "spec.command: names no program (write [python, train.py] or python train.py)",
    ),
    "a program without a name": (
        '{command: ["", a]}',
        "spec.command: names no program (write [python, train.py] or python train.py)",
    ),
    "a quote that is not closed": (
        '{command: "echo \'a"}',
        "spec.command: cannot be split into words: no closing quotation (close the quote, or write a list of words)",
    ),
    "a boolean among the words": (
        "{command: [python, train.py, --fast, true]}",
        'spec.command[3]: must be text, not true (write "true", "True" or "1")',
    ),
    "a list among the words": (
        "{command: [python, [a]]}",
        "spec.command[1]: must be text, not a list",
    ),
    "a NUL byte": (
        '{command: ["a\\0b"]}',
        "spec.command[0]: contains a NUL byte, which no process can be given",
    ),
    "a number as command": (
        "{command: 7}",
        "spec.command: must be a list of words, not 7 (write [python, train.py])",
    ),
    "a template without a command": (
        "{template: {spec: {containers: [{image: nvcr}]}}}",
        "spec.template.spec.containers[0]: has no command, and the program of the image is not known on one machine (write command: [python, train.py])",
    ),
    "arguments without a command": (
        "{template: {spec: {containers: [{image: nvcr, args: [--lr, 0.1]}]}}}",
        "spec.template.spec.containers[0].args: stands without command: the program of the image is not known on one machine (write the whole line under command)",
    ),
    "no container": (
        "{template: {spec: {containers: []}}}",
        "spec.template.spec: containers is empty: nothing would run",
    ),
    "a template without spec": (
        "{template: {metadata: {}}}",
        "spec.template.spec: is missing",
    ),
    "a line of text in a container": (
        "{template: {spec: {containers: [{command: python train.py}]}}}",
        "spec.template.spec.containers[0].command: must be a list of words, not python train.py (write [python, train.py])",
    ),
    "a command in both forms": (
        "{command: x, template: {spec: {containers: [{command: [x]}]}}}",
        "spec.template.spec.containers[0].command: is given twice: spec.command and spec.template.spec.containers[0].command (keep one of the two)",
    ),
}

ENVIRONMENT: dict[str, tuple[str, str]] = {
    "a boolean as value": (
        "{command: x, env: {FAST: true}}",
        'spec.env.FAST: must be text, not true (write "true", "True" or "1")',
    ),
    "no value": (
        "{command: x, env: {FAST: }}",
        'spec.env.FAST: must be text, not nothing (write "" for empty text)',
    ),
    "a list of variables in short": (
        "{command: x, env: [A=b]}",
        "spec.env: must be a mapping of names to text, not a list (write {NAME: text})",
    ),
    "a name with an equals sign": (
        "{command: x, env: {A=B: c}}",
        "spec.env.A=B: is not the name of a variable: A=B (a name without '=')",
    ),
    "a NUL byte in a value": (
        '{command: x, env: {A: "b\\0"}}',
        "spec.env.A: contains a NUL byte, which no process can be given",
    ),
    "a NUL byte in a folder": (
        '{command: x, workdir: "a\\0"}',
        "spec.workdir: contains a NUL byte, which no process can be given",
    ),
    "a value from a secret": (
        "{template: {spec: {containers: [{command: [x], env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}}",
        "spec.template.spec.containers[0].env[0].valueFrom: is not usable on one machine: there is no Secret, ConfigMap or pod to read it from (write the value itself, or let the program read a file)",
    ),
    "a whole ConfigMap": (
        "{template: {spec: {containers: [{command: [x], envFrom: [{configMapRef: {name: s}}]}]}}}",
        "spec.template.spec.containers[0].envFrom: is not usable on one machine: there is no Secret, ConfigMap or pod to read it from (write the value itself, or let the program read a file)",
    ),
    "a variable twice": (
        "{template: {spec: {containers: [{command: [x], env: [{name: A, value: 1}, {name: A, value: 2}]}]}}}",
        "spec.template.spec.containers[0].env[1].name: variable A is there twice",
    ),
    "a boolean in a template": (
        "{template: {spec: {containers: [{command: [x], env: [{name: A, value: false}]}]}}}",
        'spec.template.spec.containers[0].env[0].value: must be text, not false (write "false", "False" or "0")',
    ),
    "variables in both forms": (
        "{command: x, env: {A: b}, template: {spec: {containers: [{env: [{name: A, value: b}]}]}}}",
        "spec.template.spec.containers[0].env: is given twice: spec.env and spec.template.spec.containers[0].env (keep one of the two)",
    ),
    "a folder in both forms": (
        "{command: x, workdir: a, template: {spec: {containers: [{workingDir: b}]}}}",
        "spec.template.spec.containers[0].workingDir: is given twice: spec.workdir and spec.template.spec.containers[0].workingDir (keep one of the two)",
    ),
}

RESOURCES: dict[str, tuple[str, str]] = {
    "a negative number of GPUs": (
        "{command: x, gpu: -1}",
        "spec.gpu: must not be negative: -1",
    ),
    "GPUs in both forms": (
        "{command: x, gpu: 1, replicaSpec: {gpu: 1}}",
        "spec.replicaSpec.gpu: is given twice: spec.gpu and spec.replicaSpec.gpu (keep one of the two)",
    ),
    "replicas in both forms": (
        "{command: x, replicas: 2, replicaSpec: {minReplicas: 2}}",
        "spec.replicaSpec: is given twice: spec.replicas and spec.replicaSpec (keep one of the two)",
    ),
    "GPUs that disagree": (
        "{command: x, replicaSpec: {gpu: {count: 2}}, template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}}",
        "spec.template.spec.containers[0].resources.limits.nvidia.com/gpu: is 1, but spec.replicaSpec.gpu says otherwise (make them equal, or keep one of the two)",
    ),
    "a share and a whole GPU": (
        "{command: x, gpu: 0.5, template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}}",
        "spec.template.spec.containers[0].resources.limits.nvidia.com/gpu: is 1, but spec.gpu is 0.5 (make them equal, or keep one of the two)",
    ),
    "CPUs that disagree": (
        "{command: x, cpu: 2, template: {spec: {containers: [{resources: {requests: {cpu: 500m}}}]}}}",
        "spec.template.spec.containers[0].resources.requests.cpu: is 500m, but spec.cpu is 2 (make them equal, or keep one of the two)",
    ),
    "limits and requests that disagree": (
        "{template: {spec: {containers: [{command: [x], resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}]}}}",
        "spec.template.spec.containers[0].resources: nvidia.com/gpu is 1 under requests and 2 under limits (they must be equal)",
    ),
    "a limit below what is asked for": (
        "{template: {spec: {containers: [{command: [x], resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}]}}}",
        "spec.template.spec.containers[0].resources: memory is 2Gi under requests and 1Gi under limits (a limit is at least what is asked for)",
    ),
    "a limit below what the job asks for elsewhere": (
        "{cpu: 2, template: {spec: {containers: [{command: [x], resources: {limits: {cpu: 1}}}]}}}",
        "spec.template.spec.containers[0].resources.limits.cpu: is 1, but spec.cpu is 2 (make them equal, or keep one of the two)",
    ),
    "a fraction and memory": (
        "{command: x, replicaSpec: {gpu: {fraction: 0.5, memory: 10Gi}}}",
        "spec.replicaSpec.gpu: ask for a fraction of a GPU or for GPU memory, not for both",
    ),
    "a limit below the request": (
        "{command: x, replicaSpec: {gpu: {fraction: {request: 0.5, limit: 0.25}}}}",
        "spec.replicaSpec.gpu.fraction.limit: the limit 0.25 is below the request 0.5",
    ),
    "a unit nobody knows": (
        "{command: x, memory: 16GB}",
        "spec.memory: unknown unit 'GB' for memory: 16GB (did you mean 16G?)",
    ),
    "too many GPUs for one replica": (
        "{command: x, gpu: 5000}",
        "spec.gpu.count: is too large: 5000; at most 1024",
    ),
    "half a MIG instance": (
        "{template: {spec: {containers: [{command: [x], resources: {limits: {nvidia.com/mig-1g.5gb: 0.5}}}]}}}",
        "spec.template.spec.containers[0].resources.limits.nvidia.com/mig-1g.5gb: must be a whole number: 0.5",
    ),
    "a toleration without a key": (
        "{command: x, tolerations: [{value: a}]}",
        "spec.tolerations[0]: a value needs a key (leave value out to tolerate all)",
    ),
    "an operator nobody knows": (
        "{command: x, template: {spec: {containers: [{}], tolerations: [{key: a, operator: In}]}}}",
        "spec.template.spec.tolerations[0]: operator must be Equal or Exists, not In",
    ),
}

CHECKPOINTS_AND_TIMES: dict[str, tuple[str, str]] = {
    "a signal that does not exist": (
        "{command: x, checkpoint: {signal: SIGUSR3}}",
        "spec.checkpoint.signal: there is no signal SIGUSR3 (did you mean SIGUSR2?)",
    ),
    "a signal by its number": (
        "{command: x, checkpoint: {signal: 10}}",
        "spec.checkpoint.signal: there is no signal 10 (write its name, such as SIGUSR1)",
    ),
    "a signal that nobody sees": (
        "{command: x, checkpoint: {signal: SIGKILL}}",
        "spec.checkpoint.signal: SIGKILL cannot be caught, so nothing would be saved (write SIGUSR1 or SIGTERM)",
    ),
    "a signal and a command": (
        "{command: x, checkpoint: {signal: SIGUSR1, command: [save]}}",
        "spec.checkpoint.command: stands beside signal: a job is told to save its work in one way (keep signal or command)",
    ),
    "an empty command": (
        "{command: x, checkpoint: {command: []}}",
        "spec.checkpoint.command: names no program (write [python, train.py] or python train.py)",
    ),
    "no time to save": (
        "{command: x, checkpoint: {graceSeconds: 0}}",
        "spec.checkpoint.graceSeconds: must be more than 0: 0",
    ),
    "no time to save in short": (
        "{command: x, checkpoint: {grace: 0s}}",
        "spec.checkpoint.grace: must be more than 0",
    ),
    "a negative interval": (
        "{command: x, checkpoint: {intervalSeconds: -5}}",
        "spec.checkpoint.intervalSeconds: must be more than 0: -5",
    ),
    "the grace twice": (
        "{command: x, checkpoint: {graceSeconds: 30, grace: 30s}}",
        "spec.checkpoint.grace: is given twice: spec.checkpoint.graceSeconds and spec.checkpoint.grace (keep one of the two)",
    ),
    "no run time": (
        "{command: x, maxRuntimeSeconds: 0}",
        "spec.maxRuntimeSeconds: must be more than 0: 0",
    ),
    "no run time in short": (
        "{command: x, maxRuntime: 0s}",
        "spec.maxRuntime: must be more than 0: 0",
    ),
    "a unit where seconds are counted": (
        "{command: x, maxRuntimeSeconds: 1h}",
        "spec.maxRuntimeSeconds: must be whole seconds: 1h (a duration with a unit goes into the field of the same name without Seconds)",
    ),
    "parts of a second": (
        "{command: x, maxRuntimeSeconds: 1.5}",
        "spec.maxRuntimeSeconds: must be whole seconds: 1.5 (a duration with a unit goes into the field of the same name without Seconds)",
    ),
    "the run time twice": (
        "{command: x, maxRuntimeSeconds: 3600, maxRuntime: 1h}",
        "spec.maxRuntime: is given twice: spec.maxRuntimeSeconds and spec.maxRuntime (keep one of the two)",
    ),
    "the expectation twice": (
        "{command: x, expectedDurationSeconds: 60, expectedDuration: 60}",
        "spec.expectedDuration: is given twice: spec.expectedDurationSeconds and spec.expectedDuration (keep one of the two)",
    ),
    "a negative duration": (
        "{command: x, expectedDuration: -2h}",
        "spec.expectedDuration: a duration cannot be negative: -2h",
    ),
    "a deadline that is no time": (
        "{command: x, deadline: soon}",
        "spec.deadline: cannot be read as a time: soon (write an offset such as 5m or -10m, a time such as 14:20, or 2026-01-05T14:20:00Z)",
    ),
    "a deadline far away": (
        "{command: x, deadline: 9000000d}",
        "spec.deadline: lies beyond the year 9999",
    ),
    "a negative back-off": (
        "{command: x, restart: {backoffLimit: -1}}",
        "spec.restart.backoffLimit: must not be negative: -1",
    ),
    "a word for yes": (
        "{command: x, suspend: maybe}",
        "spec.suspend: must be true or false, not maybe",
    ),
    "a half preemptible job": (
        "{command: x, preemptible: half}",
        "spec.preemptible: must be true, false, surplus or lent, not half",
    ),
    "a key twice": (
        "{command: x, priority: 1, priority: 2}",
        "spec.priority: key priority is there twice; first in line 3 (keep one of the two)",
    ),
    "a pool twice": (
        "{command: x, pools: [a, a]}",
        "spec.pools[1]: pool a is there twice",
    ),
}

SPECS = {**TYPES_AND_COUNTS, **INTERACTIVE, **COMMANDS, **ENVIRONMENT, **RESOURCES, **CHECKPOINTS_AND_TIMES}

DOCUMENTS: dict[str, tuple[str, list[str]]] = {
    "no kind": (
        """\
metadata: {name: train}
spec: {command: x}
""",
        [
            "1:1: kind is missing (known: UnifiedJob, Queue, NodePool)",
        ],
    ),
    "a kind nobody knows": (
        """\
kind: UnifedJob
metadata: {name: train}
spec: {command: x}
""",
        [
            "1:7: kind: unknown kind UnifedJob (did you mean UnifiedJob?)",
        ],
    ),
    "a kind of scenario files": (
        """\
kind: Workload
metadata: {name: train}
spec: {gpu: 1}
""",
        [
            "1:7: kind: a Workload belongs into a scenario file (optimus scenario run FILE plays it)",
        ],
    ),
    "another version": (
        """\
apiVersion: optimus.dev/v2
kind: UnifiedJob
metadata: {name: train}
spec: {command: x}
""",
        [
            "1:13: job train: apiVersion: must be optimus.dev/v1alpha1, not optimus.dev/v2",
        ],
    ),
    "no metadata": (
        """\
kind: UnifiedJob
spec: {command: x}
""",
        [
            "1:1: job: metadata: is missing",
        ],
    ),
    "no spec": (
        """\
kind: UnifiedJob
metadata: {name: train}
""",
        [
            "1:1: job train: spec: is missing",
        ],
    ),
    "a name in capitals": (
        """\
kind: UnifiedJob
metadata: {name: Train_1}
spec: {command: x}
""",
        [
            "2:18: job Train_1: metadata.name: is not a DNS label: Train_1 (small letters, digits and '-', at most 63, with a letter or digit at both ends; such as train-1)",
        ],
    ),
    "a long name": (
        """\
kind: UnifiedJob
metadata: {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}
spec: {command: x}
""",
        [
            "2:18: job aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: metadata.name: is not a DNS label: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa... (small letters, digits and '-', at most 63, with a letter or digit at both ends)",
        ],
    ),
    "a namespace with a dot": (
        """\
kind: UnifiedJob
metadata: {name: train, namespace: a.b}
spec: {command: x}
""",
        [
            "2:36: job a.b/train: metadata.namespace: is not a DNS label: a.b (small letters, digits and '-', at most 63, with a letter or digit at both ends; such as a-b)",
        ],
    ),
    "a label that is no text": (
        """\
kind: UnifiedJob
metadata: {name: train, labels: {fast: true}}
spec: {command: x}
""",
        [
            '2:40: job train: metadata.labels.fast: must be text, not true (write "true" in quotes)',
        ],
    ),
    "a field beside spec": (
        """\
kind: UnifiedJob
metadata: {name: train}
specs: {}
spec: {command: x}
""",
        [
            "3:1: job train: specs: unknown key specs (did you mean spec?)",
        ],
    ),
    "a list instead of a mapping": (
        """\
- kind: UnifiedJob
""",
        [
            "1:1: a document must be a mapping with kind, metadata and spec, not a list",
        ],
    ),
    "two jobs of one name": (
        """\
kind: UnifiedJob
metadata: {name: train}
spec: {command: x}
---
kind: UnifiedJob
metadata: {name: train, namespace: default}
spec: {command: y}
""",
        [
            "6:18: job default/train: metadata.name: job default/train is there twice; first in line 2 (give it another name, or leave one of them out)",
        ],
    ),
    "two queues of one name": (
        """\
kind: Queue
metadata: {name: q}
---
kind: Queue
metadata: {name: q}
""",
        [
            "5:18: queue q: metadata.name: queue q is there twice; first in line 2 (give it another name, or leave one of them out)",
        ],
    ),
    "queues below each other": (
        """\
kind: Queue
metadata: {name: a}
spec: {parent: b}
---
kind: Queue
metadata: {name: b}
spec: {parent: a}
""",
        [
            "3:16: queue a: spec.parent: queues are below each other: a -> b -> a",
            "7:16: queue b: spec.parent: queues are below each other: b -> a -> b",
        ],
    ),
    "a queue with a bad quota": (
        """\
kind: Queue
metadata: {name: q}
spec: {gpu: {guarantee: -1}, pools: [{name: any}]}
""",
        [
            "3:25: queue q: spec.gpu.guarantee: must not be negative: -1",
        ],
    ),
    "a pool called any": (
        """\
kind: NodePool
metadata: {name: any}
""",
        [
            "2:18: pool any: metadata.name: any stands for all pools and cannot be the name of one",
        ],
    ),
    "no YAML": (
        """\
kind: UnifiedJob
metadata: {name: train
---
kind: Queue
metadata: {name: q}
""",
        [
            "3:1: is not YAML: did not find expected ',' or '}' while parsing a flow mapping",
        ],
    ),
    "many at once": (
        """\
kind: UnifiedJob
metadata: {name: Train}
spec:
  gpu: -1
  comand: x
  maxRuntimeSeconds: 60
  maxRuntime: 1m
  jobType: Interactive
  arraySize: 3
""",
        [
            "2:18: job Train: metadata.name: is not a DNS label: Train (small letters, digits and '-', at most 63, with a letter or digit at both ends; such as train)",
            "3:1: job Train: spec.command: is missing: there is neither command nor template, so nothing would run (write command: python train.py)",
            "4:8: job Train: spec.gpu: must not be negative: -1",
            "5:3: job Train: spec.comand: unknown key comand (did you mean command?)",
            "7:15: job Train: spec.maxRuntime: is given twice: spec.maxRuntimeSeconds and spec.maxRuntime (keep one of the two)",
            "9:14: job Train: spec.arraySize: an Interactive job cannot be an array (leave arraySize out, or write jobType: Job)",
        ],
    ),
}
