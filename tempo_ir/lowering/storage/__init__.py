"""Storage: how each buffer of a loop program keeps its rows, which buffers are one, and when rows are read no more.

`uses` reads who touches which row when; `liveness` asks isl how far apart rows are that live together; `groups` makes
one memory of a value and its copies; `plan` decides, `rewrite` and `frees` write the decision into the program. `check`
proves the result without using any of them. `intervals` says when buffers are live, for whoever places them.
"""
