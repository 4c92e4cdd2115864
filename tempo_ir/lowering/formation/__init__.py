"""Kernel formation: which leaves of a loop program become one kernel.

`rules` says which reads a kernel can answer from inside, `leaf` what is read of a leaf, once; `block_graph` holds the
order that one block must keep; `fusion` grows groups of leaves; `folding` makes leaves of loops, `rows` says whether
what they read is there, and `fold_kernels` grows their kernels; `loop_form_kernels` is the pass. `fold_check` and
`check` prove what came of it.
"""
