"""The meaning of the language: numpy interpreters of sdg, loop and tile programs, slow and obvious.

`sdg.run` interprets an sdg program on demand, `loop.run_loop` a loop program, `tile` a kernel; `operations.evaluate` is
what each op computes, `philox` what random numbers are.
"""
