"""Reductions over ranges that grow from point to point, and the recurrences that they are: sdg-unlift and sdg-lift.

`growth` says how a range differs at neighbouring points, `axes` and `rows` what the elements along it are made of,
`running` builds the recurrence of `sums` and `contractions`, `reductions` says what combines two parts of one.
`interleaving` says which sums may run in the loop that makes their rows (sdg-accumulate, sdg-vectorize).
"""
