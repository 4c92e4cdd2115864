// The reference interpreter runs before and after every pass: a pass that changes what is computed is found.
// RUN: tempo-opt %s --check-each -p sdg-schedule | filecheck %s
// RUN: tempo-opt %s --check-each=interp --check-set T=1 -p sdg-schedule | filecheck %s
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each -p test-miscompile 2>&1 | filecheck %s --check-prefix=CHANGED
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --check-each -p sdg-schedule,test-miscompile 2>&1 | filecheck %s --check-prefix=CHANGED
// RUN: not tempo-opt %s --check-each --check-set T=0 -p sdg-schedule 2>&1 | filecheck %s --check-prefix=SIZES
// RUN: tempo-opt %S/../../examples/rnn.py --set width=4 --set batch=3 --check-each -p sdg-default,sdg-schedule | filecheck %s --check-prefix=RNN
// RUN: tempo-opt %S/../../examples/reinforce.py --set envs=2 --check-each -p sdg-default,sdg-schedule | filecheck %s --check-prefix=REINFORCE

// RNN: loop.program @rnn
// REINFORCE: loop.program @reinforce
// CHECK: loop.program @scan
// CHANGED: error: pass 'test-miscompile' changed what @scan computes (T = 2): check s: DIFFERENT, largest difference 1 among values up to
// SIZES: error: --check-each found no small sizes for `T >= 1`: give them by --check-set NAME=VALUE

sdg.program @scan dims(t: T) where T >= 1 {
  %zero = sdg.constant 0.0 : tensor<4xf32>
  %x = sdg.input "x" in (t) : tensor<4xf32>
  %h = sdg.merge {t = 0 : %zero, t > 0 : %s[t - 1]} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = sdg.add %h[t], %x[t] in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "s" %s[t] in (t) : tensor<4xf32>
}
