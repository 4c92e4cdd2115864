"""Random programs of the whole language, each run in every way there is: `python -m tests.fuzz --seconds 60 --seed 1`."""
