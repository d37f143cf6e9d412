"""`optimus top`: GPUs, queues and jobs of a scheduler, live in a terminal.

Why: who shares a cluster wants to see at a glance who has what, who waits for what, and until when.
Owns: how the records of the HTTP API become lines (pure: `gpu_grid`, `queue_rows`, `job_rows`), and the terminal
around them (`app`, `panes`, `pages`, `reports`).
Must not: decide or compute anything that a command does not say as well; ask again and again what it is told anyway.

    watch stream ─► watching (a thread) ─► world (what is known) ─► lines, only those that are seen ─► panes

Only `app`, `panes` and `pages` know textual; the rest is tested without a terminal.
"""
