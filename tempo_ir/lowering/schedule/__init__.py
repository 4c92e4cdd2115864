"""
Scheduling: from the dependence graph of a program to loops, guards and leaves.

`driver` runs the steps: `statements` reads the graph (`graph`), `named_dims` finds an order (`order`) with
`distances` from isl, `fusion` of loops and `sinking` between them, `cost` chooses among orders; what has no order is
cut into `pieces`, and `isl_fallback` skews what needs it; `isl_tree` finds the loops and guards of an order (`nest`),
`emit` and `leaf_bodies` write the loop program; `legality` proves the result with none of these; `diagnosis` says why
there is no order. The pass is in `sdg_schedule`.
"""
