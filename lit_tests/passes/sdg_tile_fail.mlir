// What stays as it is: lengths that are fixed or no more than a tile, what a gradient names, scans and sorts.
// RUN: tempo-opt %s --split-input-file -p 'sdg-tile{tile=4}' | filecheck %s
// RUN: tempo-opt %s --split-input-file --remarks -p 'sdg-tile{tile=4}' 2>&1 | filecheck %s --check-prefix REMARK

// a fixed length
sdg.program @fixed dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<64xf32>
  %y = sdg.sum %x[t] axes [0] in (t) : (tensor<64xf32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @fixed dims(t: T) {
// CHECK-NEXT:      %x = sdg.input "x" in (t) : tensor<64xf32>
// CHECK-NEXT:      %y = sdg.sum %x[t] axes [0] in (t) : (tensor<64xf32>) -> tensor<f32>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<f32>
// CHECK-NEXT:    }

// -----

// one tile holds all of a window
sdg.program @window dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.max %x[max(0, t - 3):t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// CHECK-LABEL: sdg.program @window dims(t: T) {
// CHECK-NEXT:      %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:      %y = sdg.max %x[max(0, t - 3):t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<f32>
// CHECK-NEXT:    }

// -----

// a scan is no reduction, and nothing is gained where its value is all that is read
sdg.program @scan dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %c = sdg.cumsum %x[0:t + 1] axis 0 in (t) : (tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
  %y = sdg.max %c[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}

// REMARK: not tiled: %c[t] is not computed tile by tile

// CHECK-LABEL: sdg.program @scan dims(t: T) {
// CHECK-NEXT:      %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:      %c = sdg.cumsum %x[0:t + 1] axis 0 in (t) : (tensor<f32>) -> tensor<?xf32, #sdg.size<t + 1>>
// CHECK-NEXT:      %y = sdg.max %c[t] axes [0] in (t) : (tensor<?xf32, #sdg.size<t + 1>>) -> tensor<f32>
// CHECK-NEXT:      sdg.output "y" %y[t] in (t) : tensor<f32>
// CHECK-NEXT:    }

// -----

sdg.program @gradient dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.max %x[0:t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  %d = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "d" %d[t] in (t) : tensor<f32>
}

// REMARK: not tiled: a gradient names it

// CHECK-LABEL: sdg.program @gradient dims(t: T) {
// CHECK-NEXT:      %x = sdg.input "x" in (t) : tensor<f32>
// CHECK-NEXT:      %y = sdg.max %x[0:t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      %d = sdg.grad %y wrt %x in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:      sdg.output "d" %d[t] in (t) : tensor<f32>
// CHECK-NEXT:    }
