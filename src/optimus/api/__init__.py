"""What people write: the file formats, their defaults, and errors that say where and what to do.

Why: one reader for cluster specs, queues, workloads and scenarios, whatever body runs them.
Owns: the formats (`specs`, pydantic), reading YAML with places, turning specs into `optimus.model` (`building`).
Must not: decide, run anything, or import engine, decide or state. It ends where `optimus.model` begins.

Start at `optimus.api.loading`.
"""
