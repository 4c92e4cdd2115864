# A Python file as input: FILE.py:name picks a program, --set its settings; ops carry the lines of the file.
# RUN: tempo-opt %s:accumulate | filecheck %s
# RUN: tempo-opt %s:accumulate --set width=8 | filecheck %s --check-prefix=WIDE
# RUN: tempo-opt %s:accumulate --print-debuginfo | filecheck %s --check-prefix=LOCATION
# RUN: tempo-opt %s:accumulate -p sdg-schedule | filecheck %s --check-prefix=LOOP
# RUN: tempo-opt %s:accumulate | tempo-opt | filecheck %s
# RUN: not tempo-opt %s:accumulate --set height=8 2>&1 | filecheck %s --check-prefix=UNKNOWN
# RUN: not tempo-opt %s:scaled 2>&1 | filecheck %s --check-prefix=NEEDED
# RUN: not tempo-opt %s:reserved 2>&1 | filecheck %s --check-prefix=RESERVED
# RUN: tempo-opt %s:scaled --set factor=2.5 | filecheck %s --check-prefix=SCALED
# RUN: tempo-run %s:accumulate --set width=2 --set T=3 --set first=1.0 --check | filecheck %s --check-prefix=RESULT

import tempo_ir as tp


@tp.program
def accumulate(width=4, first=0.0):
    t, _T = tp.dim("t")
    x = tp.input("x", tp.f32[width], over=t)
    total = tp.tensor("total", tp.f32[width], over=t)
    total[0] = first
    total[t + 1] = total + x
    tp.output("total", total)


@tp.program
def scaled(factor):
    t, _T = tp.dim("t")
    tp.output("y", factor * tp.input("x", tp.f32[4], over=t))


@tp.program
def reserved(seed=0):
    tp.output("y", tp.input("x", tp.f32[4]))


# CHECK: sdg.program @accumulate dims(t: T)
# CHECK: %x = sdg.input "x" in (t{{.*}}) : tensor<4xf32>
# CHECK: sdg.merge {t = 0 : {{.*}}, t > 0 : {{.*}}[t - 1]} in (t)
# CHECK: sdg.output "total" %total[t] in (t) : tensor<4xf32>
# WIDE: sdg.output "total" %total[t] in (t) : tensor<8xf32>
# LOCATION: sdg.input "x" {{.*}} loc("{{.*}}python_input.py":19:9)
# LOOP: loop.program @accumulate dims(t: T)
# LOOP: loop.for t = 0 to T
# UNKNOWN: error: --set height: the program 'accumulate' has the settings width, first
# NEEDED: error: the program 'scaled' needs a value for 'factor': give --set factor=...
# RESERVED: python_input.py:{{[0-9]+}}: error: the setting 'seed' has the name of a call's own argument
# SCALED: sdg.constant 2.5
# RESULT: total: float32[3, 2] {{\[\[}}1. 1.] [1.089
# RESULT: check total: ok
