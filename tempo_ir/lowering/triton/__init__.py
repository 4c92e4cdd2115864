"""`tile` kernels as Triton source, one file per kernel, and the loop program round them as a Python driver.

A kernel prints one to one: a tile op is a `tl` operation, a view's implied bounds become masks, offsets that may leave
32 bits are computed in 64. Only `library.py`, whose text the printer copies, the programs that run in processes of
their own (`compile_process.py`, `interpreter_process.py`) and `device.py`, for who asks for a GPU, import triton.
"""
