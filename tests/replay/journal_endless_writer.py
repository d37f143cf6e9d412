"""A writer that records until it is killed, and says each number once it is recorded."""

import os
import sys
from pathlib import Path

from optimus.engine.journal import JournalSettings
from tests.replay.journal_samples import Recording, observations_of

if __name__ == "__main__":
    recording = Recording(Path(sys.argv[1]), settings=JournalSettings(rotate_cycles=50, keep_bytes=None))
    number = recording.start()
    while True:
        cycle = recording.cycle(observations_of(number % 4) * 50)
        os.write(1, f"{cycle.sequence}\n".encode())
        number += 1
