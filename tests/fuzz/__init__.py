"""Random programs of the whole language, each run in every way: `python -m tests.fuzz --seconds 60 --seed 1`."""
