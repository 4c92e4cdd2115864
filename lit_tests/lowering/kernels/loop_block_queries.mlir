// RUN: tempo-opt %s --check-each=interp -p loop-block-queries --split-input-file | filecheck %s

// Row t has the keys up to t: those of all rows are read, and which a row has is said where they are summed. What is done
// to the sum afterwards is done for all rows.

// CHECK-LABEL: loop.program @causal
// CHECK-NOT:     loop.for
// CHECK:         loop.kernel ins(%[[Q:.*]] = %q[0:T], %[[K:.*]] = %k[0:T], %[[V:.*]] = %v[0:T]) outs(%o[0:T]) {
// CHECK-NEXT:      %s = sdg.contract "thd,nhd->thn" %[[Q]], %[[K]] :
// CHECK-NEXT:      %m = loop.attend "thn,nhd->thd" %s, %[[V]] rows t to 1 :
// CHECK-NEXT:      %x = sdg.add %[[Q]], %m :
// CHECK-NEXT:      loop.yield %x : tensor<?x2x8xf32, #sdg.size<T>>
loop.program @causal dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 2x8xf32>
  %k = loop.input "k" : !loop.buffer<(t: full) 2x8xf32>
  %v = loop.input "v" : !loop.buffer<(t: full) 2x8xf32>
  %o = loop.output "o" : !loop.buffer<(t: full) 2x8xf32>
  loop.for t = 0 to T {
    loop.kernel at (t = t) ins(%0 = %q[t], %1 = %k[0:t + 1], %2 = %v[0:t + 1]) outs(%o[t]) {
      %s = sdg.contract "hd,nhd->hn" %0, %1 : (tensor<2x8xf32>, tensor<?x2x8xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
      %p = sdg.softmax %s axis 1 : (tensor<2x?xf32, #sdg.size<t + 1>>) -> tensor<2x?xf32, #sdg.size<t + 1>>
      %m = sdg.contract "hn,nhd->hd" %p, %2 : (tensor<2x?xf32, #sdg.size<t + 1>>, tensor<?x2x8xf32, #sdg.size<t + 1>>) -> tensor<2x8xf32>
      %x = sdg.add %0, %m : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      loop.yield %x : tensor<2x8xf32>
    }
  }
}

// -----

// A window, of keys that lie in one value; what is added to each score is read along the same keys. A step made its
// queries in a leaf of its own: they are made in the kernel.

// CHECK-LABEL: loop.program @window
// CHECK-NOT:     loop.for
// CHECK:         loop.kernel ins(%[[Q:.*]] = %q[0:T], %[[K:.*]] = %k, %[[E:.*]] = %e[0:T]) outs(%o[0:T]) {
// CHECK-NEXT:      %[[A:.*]] = sdg.neg %[[Q]]
// CHECK-NEXT:      %[[N:.*]] = sdg.slice %[[K]] take [0:T, 0:8] :
// CHECK-NEXT:      %[[S:.*]] = sdg.contract "td,nd->tn" %[[A]], %[[N]] :
// CHECK-NEXT:      %[[B:.*]] = sdg.add %[[S]], %[[E]] :
// CHECK-NEXT:      loop.attend "tn,nd->td" %[[B]], %[[N]] rows t from -2 to 1 :
loop.program @window dims(t: T) {
  %q = loop.input "q" : !loop.buffer<(t: full) 8xf32>
  %k = loop.input "k" : !loop.buffer<?x8xf32, [T]>
  %e = loop.input "e" : !loop.buffer<(t: full) f32>
  %o = loop.output "o" : !loop.buffer<(t: full) 8xf32>
  loop.for t = T - 1 down to 0 {
    %a = loop.alloc : !loop.buffer<8xf32>
    loop.compute at (t = t) ins(%0 = %q[t]) outs(%a) {
      %r = sdg.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
      loop.yield %r : tensor<8xf32>
    }
    loop.kernel at (t = t) ins(%0 = %a, %1 = %k, %2 = %e[max(0, t - 2):t + 1]) outs(%o[t]) {
      %n = sdg.slice %1 take [max(0, t - 2):t + 1, 0:8] : (tensor<?x8xf32, #sdg.size<T>>) -> tensor<?x8xf32, #sdg.size<min(t + 1, 3)>>
      %s = sdg.contract "d,nd->n" %0, %n : (tensor<8xf32>, tensor<?x8xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 3)>>
      %b = sdg.add %s, %2 : (tensor<?xf32, #sdg.size<min(t + 1, 3)>>, tensor<?xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 3)>>
      %p = sdg.softmax %b axis 0 : (tensor<?xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<?xf32, #sdg.size<min(t + 1, 3)>>
      %m = sdg.contract "n,nd->d" %p, %n : (tensor<?xf32, #sdg.size<min(t + 1, 3)>>, tensor<?x8xf32, #sdg.size<min(t + 1, 3)>>) -> tensor<8xf32>
      loop.yield %m : tensor<8xf32>
    }
  }
}

// -----

// What follows, of every batch of an outer loop.

// CHECK-LABEL: loop.program @following
// CHECK:         loop.for b = 0 to B {
// CHECK-NEXT:      loop.kernel at (b = b) ins(%[[Q:.*]] = %q[b, 0:T], %[[K:.*]] = %k[b, 0:T]) outs(%o[b, 0:T]) {
// CHECK:             loop.attend "tn,nd->td" %{{.*}}, %[[K]] rows t from 0 :
loop.program @following dims(b: B, t: T) {
  %q = loop.input "q" : !loop.buffer<(b: full, t: full) 8xf32>
  %k = loop.input "k" : !loop.buffer<(b: full, t: full) 8xf32>
  %o = loop.output "o" : !loop.buffer<(b: full, t: full) 8xf32>
  loop.for b = 0 to B {
    loop.for t = 0 to T {
      loop.kernel at (b = b, t = t) ins(%0 = %q[b, t], %1 = %k[b, t:T]) outs(%o[b, t]) {
        %s = sdg.contract "d,nd->n" %0, %1 : (tensor<8xf32>, tensor<?x8xf32, #sdg.size<max(0, T - t)>>) -> tensor<?xf32, #sdg.size<max(0, T - t)>>
        %p = sdg.softmax %s axis 0 : (tensor<?xf32, #sdg.size<max(0, T - t)>>) -> tensor<?xf32, #sdg.size<max(0, T - t)>>
        %m = sdg.contract "n,nd->d" %p, %1 : (tensor<?xf32, #sdg.size<max(0, T - t)>>, tensor<?x8xf32, #sdg.size<max(0, T - t)>>) -> tensor<8xf32>
        loop.yield %m : tensor<8xf32>
      }
    }
  }
}
