"""What the borrower runs: steps that are written down, one line each, where everybody can read them afterwards."""

import os
import time

import optimus

RANK = os.environ["OPTIMUS_RANK"]
TOTAL = 4000


def say(word: str, step: int) -> None:
    with open("/shared/story", "a") as story:
        story.write(f"{RANK} {word} {step}\n")


state = {"done": 0}
begun = False
try:
    for step in optimus.steps(TOTAL, state=state, every_rank=True):
        if not begun:
            say("begins", step)
            begun = True
        say("did", step)
        state["done"] = step + 1
        time.sleep(0 if os.path.exists("/shared/hurry") else 0.1)
except optimus.AskedToLeave:
    say("left", state["done"])
    raise
