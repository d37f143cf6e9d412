"""Counts its steps, so that everybody who waits for its GPUs knows when it will be done."""

import time

import optimus

for _step in optimus.steps(1200):
    time.sleep(0.5)
