"""UnifiedJobs that a server refuses when they are written, each with a part of what it says."""

from __future__ import annotations

from typing import Any

GPU = "spec.replicaSpec.gpu"


def job(name: str = "wrong", /, **spec: Any) -> dict[str, Any]:
    """With a template, unless another one is given."""
    spec.setdefault("template", pods())
    return {"apiVersion": "optimus.dev/v1alpha1", "kind": "UnifiedJob", "metadata": {"name": name}, "spec": spec}


def pods(**pod: Any) -> dict[str, Any]:
    pod.setdefault("containers", [{"name": "main", "image": "pytorch", "command": ["python", "train.py"]}])
    return {"spec": pod}


def replicas(**numbers: Any) -> dict[str, Any]:
    return job(replicaSpec=numbers)


def gpu(**said: Any) -> dict[str, Any]:
    return job(replicaSpec={"gpu": said})


def one(**said: Any) -> dict[str, Any]:
    """A container."""
    return pods(containers=[{"name": "main", "image": "pytorch", **said}])


WRONG: list[tuple[str, dict[str, Any], str]] = [
    # how many
    ("min-above-max", replicas(minReplicas=4, maxReplicas=2), "minReplicas is above maxReplicas: lower the one"),
    ("wish-below", replicas(minReplicas=2, desiredReplicas=1), "desiredReplicas is below minReplicas: wish for at"),
    ("wish-above", replicas(maxReplicas=4, desiredReplicas=5), "desiredReplicas is above maxReplicas: wish for at"),
    ("no-replicas", replicas(minReplicas=0), "minReplicas in body should be greater than or equal to 1"),
    ("too-many", replicas(maxReplicas=100_001), "maxReplicas in body should be less than or equal to 100000"),
    ("half-a-replica", replicas(minReplicas=1.5), "minReplicas in body must be of type integer"),
    ("sizes-fall", replicas(sizes=[4, 2, 1]), "sizes must ascend, each once: write [1, 2, 4]"),
    ("sizes-twice", replicas(sizes=[2, 2, 4]), "sizes must ascend, each once: write [1, 2, 4]"),
    ("sizes-of-none", replicas(sizes=[0, 2]), "write numbers from 1 such as [1, 2, 4], or [powersOfTwo]"),
    ("sizes-in-words", replicas(sizes=["even"]), "write numbers from 1 such as [1, 2, 4], or [powersOfTwo]"),
    ("sizes-as-text", replicas(sizes="powersOfTwo"), "sizes in body must be of type array"),
    ("no-sizes", replicas(sizes=[]), "sizes in body should have at least 1 items"),
    ("sizes-above", replicas(sizes=[1, 2, 8], maxReplicas=4), "sizes begin with minReplicas and end at or below"),
    ("sizes-below", replicas(sizes=[1, 2, 4], minReplicas=2), "sizes begin with minReplicas and end at or below"),
    ("odd-power", replicas(sizes=["powersOfTwo"], minReplicas=3), "needs a minReplicas of 1, 2, 4, 8"),
    ("wish-outside", replicas(sizes=[1, 2, 4], desiredReplicas=5), "desiredReplicas lies outside sizes: wish for one"),
    # what each needs
    ("fraction-with-count", gpu(count=2, fraction={"request": 0.5}), "a fraction is a part of one GPU: keep count"),
    ("memory-with-count", gpu(count=2, memory="20Gi"), "memory is a part of one GPU: keep count or memory"),
    ("fraction-and-memory", gpu(fraction={"request": 0.5}, memory="20Gi"), "a fraction of a GPU or for GPU memory"),
    ("more-than-one", gpu(fraction={"request": 1.5}), "fraction.request in body should be less than or equal to 1"),
    ("none-of-it", gpu(fraction={"request": 0}), "fraction.request in body should be greater than 0"),
    ("limit-below", gpu(fraction={"request": 0.5, "limit": 0.25}), "the limit is below the request: raise it"),
    (
        "limit-above",
        gpu(fraction={"request": 0.5, "limit": 2}),
        "fraction.limit in body should be less than or equal to 1",
    ),
    ("no-request", gpu(fraction={"limit": 0.5}), f"{GPU}.fraction.request: Required value"),
    ("fraction-in-words", gpu(fraction={"request": "half"}), "fraction.request in body must be of type number"),
    ("no-memory", gpu(memory=0), "GPU memory must be more than nothing: write 20Gi"),
    ("memory-in-words", gpu(memory="much"), "is no memory: write 16Gi, 512Mi or 2G"),
    ("negative-gpus", gpu(count=-1), "gpu.count in body should be greater than or equal to 0"),
    ("gpu-as-number", job(replicaSpec={"gpu": 2}), f"{GPU} in body must be of type object"),
    ("model-twice", gpu(models=["A100", "A100"]), f'{GPU}.models[1]: Duplicate value: "A100"'),
    ("speed-of-another", gpu(models=["A100"], speeds={"H100": 2}), "speeds names a model that is not among models"),
    ("no-speed", gpu(models=["A100"], speeds={"A100": "1.5x"}), "speeds.A100 in body must be of type number"),
    ("standing-still", gpu(models=["A100"], speeds={"A100": 0}), "speeds.A100 in body should be greater than 0"),
    ("cpu-in-words", job(replicaSpec={"cpu": "4 cores"}), 'is no cpu: write 4, "0.5" or 500m'),
    ("negative-fpgas", job(replicaSpec={"accelerators": {"fpga": -1}}), "should be greater than or equal to 0"),
    # which job
    ("unknown-type", job(jobType="TensorFlow"), 'supported values: "Job", "PyTorchElastic", "HorovodElastic", "MPI"'),
    ("array-of-sessions", job(jobType="Interactive", arraySize=3), "only a Job can be an array: leave arraySize out"),
    ("array-of-services", job(jobType="Service", arraySize=3), "only a Job can be an array: leave arraySize out"),
    ("empty-array", job(arraySize=0), "arraySize in body should be greater than or equal to 1"),
    ("huge-array", job(arraySize=100_001), "arraySize in body should be less than or equal to 100000"),
    (
        "array-of-gangs",
        job(arraySize=3, replicaSpec={"minReplicas": 2}),
        "each part of an array is one replica: leave the numbers out",
    ),
    (
        "gang-of-sessions",
        job(jobType="Interactive", replicaSpec={"minReplicas": 2}),
        "an Interactive job runs as one replica",
    ),
    (
        "session-that-grows",
        job(jobType="Interactive", replicaSpec={"maxReplicas": 4}),
        "an Interactive job runs as one replica",
    ),
    (
        "unattended-session",
        job(jobType="Interactive", **{"class": "unattended"}),
        "an Interactive job is of class interactive: leave class out",
    ),
    ("unknown-class", job(**{"class": "urgent"}), 'supported values: "interactive", "unattended", "inference"'),
    ("perhaps", job(preemptible="perhaps"), 'preemptible: Unsupported value: "perhaps": supported values'),
    ("priority-in-words", job(priority="high"), "priority in body must be of type integer"),
    ("huge-priority", job(priority=2**40), "priority in body should be less than or equal to 2147483647"),
    ("name-too-long", {**job("a" * 51)}, "at most 50 small letters, digits and '-'"),
    ("name-with-a-dot", {**job("a.b")}, "at most 50 small letters, digits and '-'"),
    ("name-of-digits", {**job("7b")}, "the name must begin with a letter"),
    ("a-typo", job(preemptable=True), 'unknown field "spec.preemptable"'),
    ("short-form", job(command="python train.py"), 'unknown field "spec.command"'),
    ("no-spec", {key: value for key, value in job().items() if key != "spec"}, "spec: Required value"),
    # where
    ("topology-in-words", job(topology={"required": "same rack"}), "is no level: write host, nvlink, or one of"),
    ("topology-as-text", job(topology="rack"), "topology in body must be of type object"),
    ("same-level-twice", job(topology={"required": "rack", "preferred": "rack"}), "preferred says nothing beyond"),
    ("below-nvlink", job(topology={"required": "nvlink", "preferred": "host"}), "nothing is narrower than nvlink"),
    ("pool-twice", job(pools=["a100", "a100"]), "spec.pools[1]: Duplicate value"),
    # saving, retries, times
    ("cannot-be-caught", job(checkpoint={"signal": "SIGKILL"}), "cannot be caught, so nothing would be saved"),
    ("no-signal", job(checkpoint={"signal": "SIGSAVE"}), "is no signal: write its name, such as SIGUSR1"),
    ("both-ways", job(checkpoint={"signal": "SIGUSR1", "command": ["save"]}), "keep signal or command"),
    ("no-command", job(checkpoint={"command": []}), "command in body should have at least 1 items"),
    (
        "negative-grace",
        job(checkpoint={"graceSeconds": -5}),
        "graceSeconds in body should be greater than or equal to 1",
    ),
    ("grace-with-unit", job(checkpoint={"graceSeconds": "5m"}), "graceSeconds in body must be of type integer"),
    ("somewhere", job(checkpoint={"path": "checkpoints"}), "write an absolute path, inside a volume"),
    (
        "negative-retries",
        job(restart={"backoffLimit": -1}),
        "backoffLimit in body should be greater than or equal to 0",
    ),
    ("no-time", job(maxRuntimeSeconds=0), "maxRuntimeSeconds in body should be greater than or equal to 1"),
    ("no-moment", job(deadline="soon"), "deadline in body must be of type date-time"),
    ("lost", job(onLoss="cry"), 'supported values: "replace", "restart"'),
    ("slower-than-nothing", job(speedup=[1, "slow"]), "speedup[1] in body must be of type number"),
    # the template
    ("no-template", {**job(), "spec": {"queue": "q"}}, "spec.template: Required value"),
    ("no-pod", job(template={}), "spec.template.spec: Required value"),
    ("no-containers", job(template=pods(containers=[])), "containers in body should have at least 1 items"),
    ("no-image", job(template=pods(containers=[{"name": "main"}])), "containers[0].image: Required value"),
    ("no-name", job(template=pods(containers=[{"image": "x"}])), "containers[0].name: Required value"),
    ("one-name", job(template=pods(containers=[{"name": "a", "image": "x"}] * 2)), "containers[1]: Duplicate value"),
    ("numbers-as-words", job(template=one(args=["--lr", 0.1])), "args[1] in body must be of type string"),
    (
        "number-in-env",
        job(template=one(env=[{"name": "A", "value": 7}])),
        "env[0].value in body must be of type string",
    ),
    (
        "names-a-node",
        job(template=pods(nodeName="node-1")),
        "a pod that names its node is not scheduled: write nodeSel",
    ),
    (
        "restarts-alone",
        job(template=pods(restartPolicy="Always")),
        "leave it out, or write Never: a replica that fails",
    ),
    (
        "owns-pods",
        job(template={**pods(), "metadata": {"ownerReferences": []}}),
        'unknown field "spec.template.metadata.ownerReferences"',
    ),
]
