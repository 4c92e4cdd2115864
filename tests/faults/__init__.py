"""Faults on purpose: edits of a copy of the compiler, each of which the tests must notice.

`planted/` holds one diff per fault that somebody thought of; `mutants` makes random ones. The tests themselves know
nothing of them: what to run for a fault follows from the package that it edits (`suite`).
"""
