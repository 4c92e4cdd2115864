"""Kernel formation: which leaves of a loop program become one kernel.

`rules` says which reads a kernel can answer from inside; `block_graph` holds the order that one block must keep;
`fusion` grows groups of leaves; `loop_form_kernels` is the pass.
"""
