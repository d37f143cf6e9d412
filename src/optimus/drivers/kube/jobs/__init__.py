"""Jobs: the life of UnifiedJobs on a cluster (ADR 25).

    UnifiedJob, its pods ──► reading, replicas ──► looking (pure) ──► status first, then pods ──► sending
                                  ▲                                                                  │
                                  └───────────────────── seeing ◄──── the watch ◄────────────────────┘

Why: the scheduler steers a job by one number; somebody has to make it so, for every type of job, through every death.
Owns: the pods of a UnifiedJob, their ends, and its status.
Must not: choose places, write `targetReplicas`, or remember anything that the server does not have.
"""
