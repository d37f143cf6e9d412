"""A training that only pretends to train, but really saves its work and goes on where it was: see optimus.steps."""

import sys
import time

import optimus

state = {"loss": 10.0}
for step in optimus.steps(int(sys.argv[1]), state=state, every=10):
    time.sleep(0.5)
    state["loss"] *= 0.99
    if step % 10 == 0:
        print(f"step {step}: loss {state['loss']:.3f} (attempt {optimus.attempt()})", flush=True)
print(f"done, loss {state['loss']:.3f}")
