"""Real parts for tests and benchmarks: what cannot be installed as a package is built and started here."""
