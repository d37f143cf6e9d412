"""One machine: real processes, real or virtual GPUs, a store that survives anything.

Why: whoever has one computer must have everything, in one command.
Owns: the store, the processes, and the loop that keeps jobs, brain and processes in step.
Must not: decide who runs (the engine does), or what follows from a replica's end (`optimus.lives` does).

    people ──► desk ──► body ──► store (first)  ──► keeping: real processes
                         ▲ │
               facts     │ └──► engine.step ──► plan ──► lives of jobs ──► reconcile
                         └──────────── what processes do ◄─────────────────┘

A turn of the body: take in what happened, ask the brain, write everything down, and only then act. Whatever is killed
at whatever moment, the store says what was wanted, and the folders of the processes say what was done.
"""
