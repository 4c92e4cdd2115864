"""Persistent kernels: a whole loop over steps as one launch, whose programs each keep to rows of their own.

`rows` finds the axis that all values of a loop have and nothing mixes; `work` says whether one program does a step in
about the time of its launches; `loop_persist` is the pass that asks both and marks the loop. loop-lower-kernels makes
the kernel of a loop that is marked (`kernels.persistent`), and `kernels.persistent_check` proves on that kernel that
programs keep to their rows.
"""
