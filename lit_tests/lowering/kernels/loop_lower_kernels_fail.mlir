// RUN: not tempo-opt %s -p 'loop-lower-kernels{target=abacus}' 2>&1 | filecheck %s --check-prefix=TARGET

// TARGET: unknown target 'abacus'; use one of cpu, gfx942, sm_80, sm_90, triton-interpret
loop.program @p {
  %x = loop.input "x" : !loop.buffer<3xf32>
  %y = loop.output "y" : !loop.buffer<3xf32>
  loop.compute ins(%a = %x) outs(%y) {
    %r = sdg.sort %a axis 0 : (tensor<3xf32>) -> tensor<3xf32>
    loop.yield %r : tensor<3xf32>
  }
}
