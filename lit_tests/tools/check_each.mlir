// The reference interpreter runs before and after every pass: a pass that changes what is computed is found, by name,
// with the first value that differs and the call that shows it.
// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s
// RUN: tempo-opt %s --check-each=interp --check-set T=1 -p sdg-schedule | filecheck %s
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each -p test-miscompile 2>&1 | filecheck %s --check-prefix=CHANGED
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each -p sdg-cse,sdg-schedule,loop-form-kernels,test-miscompile,loop-plan-storage 2>&1 | filecheck %s --check-prefix=CHANGED
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each -p sdg-default,sdg-schedule,test-stop-early,loop-form-kernels 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each --check-set T=2 -p sdg-schedule,test-stop-early 2>&1 | filecheck %s --check-prefix=TWO
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each --check-set T=1 -p sdg-schedule,test-stop-early | filecheck %s
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each -p test-forget 2>&1 | filecheck %s --check-prefix=LOST
// RUN: tempo-opt %S/Inputs/environment.mlir --check-each -p sdg-default,sdg-schedule | filecheck %s --check-prefix=STAND-IN
// RUN: not tempo-opt %S/Inputs/environment.mlir --load-pass-plugin=%S/Inputs/plugin.py --check-each -p sdg-schedule,test-miscompile 2>&1 | filecheck %s --check-prefix=HOST
// RUN: tempo-opt %S/Inputs/first_step.mlir --check-each -p sdg-default,sdg-schedule | filecheck %s --check-prefix=WRITTEN
// RUN: not tempo-opt %s --check-each --check-set T=0 -p sdg-schedule 2>&1 | filecheck %s --check-prefix=SIZES
// RUN: not tempo-opt %s --check-each --check-set N=1 -p sdg-schedule 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not tempo-opt %s --check-each --check-set T=many -p sdg-schedule 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: tempo-opt %S/../../examples/rnn.py --set width=4 --set batch=3 --check-each -p sdg-default,sdg-schedule,loop-form-kernels,loop-plan-storage | filecheck %s --check-prefix=RNN
// RUN: tempo-opt %S/../../examples/reinforce.py --set envs=2 --check-each -p sdg-default,sdg-schedule | filecheck %s --check-prefix=REINFORCE

// RNN: loop.program @rnn
// REINFORCE: loop.program @reinforce
// CHECK: loop.program @scan
// CHANGED: check_each.mlir:47:3: error: pass 'test-miscompile' changed what @scan computes: output "s": largest difference 1 among values up to {{.*}}; 4 of 4 values, first at [0, 0]: 1.089{{.*}}, not 0.089
// CHANGED-NEXT: sdg.output "s" %s[t]
// CHANGED-NEXT: ^
// CHANGED-NEXT: note: seen by --set T=1 --seed 0
// CHANGED-NEXT: note: x: float32[1, 4] {{\[\[}}0.089
// EARLY: error: pass 'test-stop-early' changed what @scan computes: output "s": {{.*}}; 4 of 20 values, first at [4, 0]: 0.0, not
// EARLY: note: seen by --set T=5 --seed 0
// EARLY-NEXT: note: x: float32[5, 4]
// TWO: first at [1, 0]: 0.0, not
// TWO: note: seen by --set T=2 --seed 0
// LOST: error: pass 'test-forget' took output "s" of @scan away
// STAND-IN: loop.host @env::@step
// HOST: error: pass 'test-miscompile' changed what @environment computes: @env::@step call 1: argument 0: {{.*}} first at []: 1.0, not 0.5
// WRITTEN: loop.for t = 0 to T {
// WRITTEN-NEXT: loop.host @env::@step
// SIZES: error: --check-each found no small sizes for `T >= 1`: give them by --check-set NAME=VALUE
// UNKNOWN: error: --check-set N: no program has this bound: @scan has T
// NUMBER: error: --check-set T=many: a bound is a number of steps, 0 or more

sdg.program @scan dims(t: T) where T >= 1 {
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.merge {t = 0 : %zero, t > 0 : %s[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.add %h[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}
