// Case 3: an index with fewer entries leaves dims; slices become leading axes in the order of dims.
sdg.program @dims_left_by_an_index dims(a: A, b: B) where A >= 5 and B >= 2 attributes {preconditions = [#sdg.precondition<#sdg.cond<(A >= 5)>, "sdg.mul reads %x[0:5, b]">, #sdg.precondition<#sdg.cond<(B >= 2)>, "sdg.mul reads %x[0, 1]">]} {
  %x = sdg.input "x" in (a, b) : tensor<2x3xf32>
  %0 = sdg.constant 2.0 : tensor<f32>
  %1 = sdg.mul %x[0, b], %0 in (b) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  sdg.output "row" %1[b] in (b) : tensor<2x3xf32>
  %2 = sdg.mul %x[0, 1], %0 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  sdg.output "point" %2 : tensor<2x3xf32>
  sdg.output "next" %x[min(A - 1, a + 1), b] in (a, b) : tensor<2x3xf32>
  %3 = sdg.constant 1.5 : tensor<f32>
  %4 = sdg.mul %x[0:5, b], %3 in (b) : (tensor<2x3xf32>, tensor<f32>) -> tensor<5x2x3xf32>
  sdg.output "five" %4[b] in (b) : tensor<5x2x3xf32>
  %5 = sdg.sum %x[0:a + 1, b] axes [0] in (a, b) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  sdg.output "growing" %5[a, b] in (a, b) : tensor<2x3xf32>
  %6 = sdg.mul %x[0:A, 0:B], %3 : (tensor<2x3xf32>, tensor<f32>) -> tensor<?x?x2x3xf32, #sdg.size<A, B>>
  sdg.output "both" %6 : tensor<?x?x2x3xf32, #sdg.size<A, B>>
}
