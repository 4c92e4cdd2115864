"""Tiling on the graph: `axes` says how an op lets an axis through, `pieces` builds a part of an axis of a value,
`running` makes reductions run over the parts, `online` softmax-weighted sums."""
