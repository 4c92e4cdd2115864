// Values stay that are read at once, or not row by row, that the caller has, or that no later loop reads.
// RUN: tempo-opt %s --check-each -p sdg-insert-swap | filecheck %s
// RUN: tempo-opt %s --remarks -p sdg-insert-swap 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: not tempo-opt %s -p 'sdg-insert-swap{sizes="B=3"}' 2>&1 | filecheck %s --check-prefix=BOUND
// RUN: not tempo-opt %s -p 'sdg-insert-swap{sizes="T"}' 2>&1 | filecheck %s --check-prefix=FORM
// RUN: not tempo-opt %s -p 'sdg-insert-swap{solver=best}' 2>&1 | filecheck %s --check-prefix=SOLVER

// BOUND: error: sdg-insert-swap: @stays has no bound B; it has T
// FORM: error: sdg-insert-swap: sizes are of the form T=512, got 'T'
// SOLVER: error: sdg-insert-swap has no solver 'best'; use one of greedy, ilp

!h = tensor<16xf32>

// REMARK-DAG: remark: not swapped: %h[0:T] is read at once
// REMARK-DAG: remark: not swapped: %k[t floordiv 2] is not read row by row

// CHECK-LABEL: sdg.program @stays
// CHECK-NOT:     sdg.swap
sdg.program @stays dims(t: T) {
  %x = sdg.input "x" in (t) : !h
  %zero = sdg.constant 0.0 : !h
  %s = sdg.merge {t = 0 : %x[t], t > 0 : %h[t - 1]} in (t) : (!h, !h) -> !h
  %h = sdg.tanh %s[t] in (t) : (!h) -> !h
  %k = sdg.reverse %h[t] axis 0 in (t) : (!h) -> !h
  %o = sdg.reverse %k[t] axis 0 in (t) : (!h) -> !h
  %here = sdg.exp %h[t] in (t) : (!h) -> !h
  %n = sdg.merge {t = T - 1 : %zero, t < T - 1 : %b[t + 1]} in (t) : (!h, !h) -> !h
  %m = sdg.mul %n[t], %k[t floordiv 2] in (t) : (!h, !h) -> !h
  %b = sdg.mul %m[t], %o[t] in (t) : (!h, !h) -> !h
  %g = sdg.gather %h[0:T], %i[t] axis 0 in (t) : (!h, tensor<i64>) -> !h
  %i = sdg.index T - 1 - t in (t) : tensor<i64>
  %p = sdg.add %b[t], %g[t] in (t) : (!h, !h) -> !h
  sdg.output "p" %p[t] in (t) : !h
  sdg.output "o" %o[t] in (t) : !h
  sdg.output "here" %here[t] in (t) : !h
}
