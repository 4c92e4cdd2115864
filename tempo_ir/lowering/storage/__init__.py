"""Storage: how each buffer of a loop program keeps its rows, which buffers are one, and when rows are read no more.

`uses` reads who touches which row when; `liveness` asks isl how far apart rows are that live together; `groups` makes
one memory of a value and its copies, `starts` writes first values before the loops; `plan` decides; `rewrite`, `frees`
and `donation` write the decision into the program. `check` (over `instances`) proves the result without using any of
them. `swaps` lets rows lie with the host meanwhile, which `swap_check` proves. `intervals` says when buffers are live,
for whoever places them.
"""
