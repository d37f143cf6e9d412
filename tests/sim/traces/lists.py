"""Small lists of jobs, written as the published ones are."""

from __future__ import annotations

import gzip
from pathlib import Path

from optimus.drivers.sim.traces.trace import Trace, Verdict
from optimus.drivers.sim.works.steady import Steady

PHILLY = """\
job_id,submit_time,duration_s,num_gpus,vc
0,2017-09-04 10:30:00,120.0,8,blue
1,2017-09-04 10:31:00,30.5,12,red
2,2017-09-04 10:32:00,600,1,blue
"""

ITP = """\
job_id,submit_s,duration_s,num_gpus,model_name,batch_size,num_iteration,deadline_s
0,1000,100,4,vgg16,64,400,1150
1,1060,100,1,bert,32,100,1500
"""

THROUGHPUTS = """\
model,global_batch_size,num_gpus,iterations_per_s
vgg16,64,1,2.0
vgg16,64,2,3.0
vgg16,64,4,4.0
"""

GAVEL = """\
job_id,job_type,scale_factor,total_steps,priority_weight,slo,arrival_s
0,LM (batch size 5),1,1000,1.0,-1.0,0.0
1,LM (batch size 5),4,4000,1.0,2.0,60.0
"""

RATES = """\
gpu_type,consolidated,job_type,scale_factor,other_job_type,other_scale_factor,steps_per_s,other_steps_per_s
v100,1,LM (batch size 5),1,,,10.0,
k80,1,LM (batch size 5),1,,,2.0,
v100,1,LM (batch size 5),4,,,40.0,
v100,0,LM (batch size 5),4,,,10.0,
k80,1,LM (batch size 5),4,,,8.0,
k80,0,LM (batch size 5),4,,,6.0,
v100,1,LM (batch size 5),1,LM (batch size 5),1,6.0,6.0
"""


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def with_rows(head: str, *rows: str) -> str:
    """The header of a list with other rows."""
    return "\n".join([head.splitlines()[0], *rows]) + "\n"


def said(trace: Trace, verdict: Verdict) -> dict[int, str]:
    """Line -> what was said of it."""
    return {problem.line: problem.message for problem in trace.problems if problem.verdict is verdict}


def steady(trace: Trace, name: str) -> Steady:
    work = next(job.work for job in trace.jobs if job.name == name)
    assert isinstance(work, Steady)
    return work
