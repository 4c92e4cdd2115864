"""What is checked and measured on a GPU: `make gpu-check PYTHON=python3`.

`write` runs in the CPU environment: it compiles programs, writes their Triton packages, their inputs and what the CPU
target makes of these. `check.py` runs in an environment with a CUDA torch and triton, and needs nothing else.
"""
