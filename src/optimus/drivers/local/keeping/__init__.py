"""Keeping: real processes that outlive the scheduler, and are found again by the next one.

Why: a scheduler that is killed or upgraded must cost nobody their training run.
Owns: starting a replica at most once, its log, the record of its start and of its end, and its death when it is asked.
Must not: know jobs, decide, restart anything, or import the rest of Optimus.

    scheduler ── orders ──► nursery ── fork ──► supervisor ── spawn ──► replica
     Keeper                 (warm, dies          (a child of init,       (a session of its own,
       ▲                    with the scheduler)   one a job's start)      writes to `log` itself)
       │                                             │
       ├────────── reports: born, started, refused ──┤ at most once, while there is a scheduler
       └────────── lifeline: it is over ─────────────┘ then the files speak: `started`, `exit`

Replicas of one job that start together share a supervisor, at most 32 of them: a gang shares its fate anyway, and a
process less for each is most of what a short one costs. In a flood, so do up to eight starts of several jobs.

An interpreter takes too long to start for every replica, so one is kept warm and forks. Messages are only a faster way
to hear what the files say; whoever comes later reads the files and knows the same.

The life of an attempt, one folder `runs/<attempt>` each:

    requested ──mkdir──► claimed ──link `started`──► started ──link `exit`──► exited
        │                   │                           │
        │                   │                           └── supervisor gone without `exit`, or another boot ──► lost
        └───────────────────┴── folder is there already, or cannot be made, or `started` was taken ──► refused

Three names in the file system decide, each taken atomically and once: the folder (which supervisor), `started` (whether
user code runs at all; a restarted scheduler that finds none takes the name itself, and a late supervisor then runs
nothing), and `exit`. What survives a power failure of the machine is not needed: another boot means that all are lost.

The scheduler's side: `events` what is asked and told · `keeper` the door · `nursery_line`, `ordering` to the nursery ·
`finding` what a folder says · `reaching` signals that cannot hit a stranger · `limiting`, `delegation` which limits
are kept on this machine.
The small side, forked a lot and so without large imports: `nursery` · `supervisor` · `replica` · `sweeping` · `kernel`.
Both: `wire` messages · `recording` the files · `identity` who a process is · `cgroups` those of a replica.
"""
