// `-t llvm` and `-t triton` lower what is not lowered yet and print code.
// RUN: tempo-opt %S/Inputs/scan.mlir -p sdg-schedule -t triton | filecheck %s --check-prefix=TRITON
// RUN: tempo-opt %S/Inputs/scan.mlir -p sdg-schedule -t 'triton{machine=sm_90}' | filecheck %s --check-prefix=TRITON
// RUN: tempo-opt %S/Inputs/scan.mlir -p 'sdg-schedule,loop-lower-kernels{target=sm_80}' -t triton | filecheck %s --check-prefix=TRITON
// RUN: tempo-opt %S/Inputs/scan.mlir -p sdg-schedule -t llvm | filecheck %s --check-prefix=LLVM
// RUN: not tempo-opt %S/Inputs/scan.mlir -t triton 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not tempo-opt %S/Inputs/scan.mlir -p sdg-schedule -t 'triton{machine=cray}' 2>&1 | filecheck %s --check-prefix=MACHINE

// TRITON: # ---- {{.*}}.py
// TRITON: import triton.language as tl
// TRITON: @triton.jit
// TRITON: tl.load(

// LLVM: define void @add_kernel(ptr

// EARLY: scan.mlir:1:1: error: @scan is an sdg program, which has no kernels yet: run --pass-pipeline='sdg-default,sdg-schedule,loop-form-kernels,loop-plan-storage' on it
// MACHINE: error: unknown target 'cray'; use one of cpu,
