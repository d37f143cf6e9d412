"""The controller loses nothing when anything dies: real faults on a real server, and one checker of the end state."""
