"""Two hundred steps that are never lost: see docs/guides/checkpoint-and-resume.md."""

import time

import optimus

state = {"total": 0}
for step in optimus.steps(200, state=state, every=5):
    time.sleep(0.1)
    state["total"] += step
    if step % 20 == 19:
        print(f"step {step}, total {state['total']}, attempt {optimus.attempt()}", flush=True)
print("done:", state["total"])
