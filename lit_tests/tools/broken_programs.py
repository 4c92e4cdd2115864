# Mistakes in Python programs: the user's file and line, one clean message.
# RUN: not tempo-opt %s:arity 2>&1 | filecheck %s --check-prefix=ARITY
# RUN: not tempo-opt %s:out_of_range 2>&1 | filecheck %s --check-prefix=RANGE
# RUN: not tempo-opt %s:gap 2>&1 | filecheck %s --check-prefix=GAP
# RUN: not tempo-opt %s:cycle 2>&1 | filecheck %s --check-prefix=CYCLE
# RUN: not tempo-opt %s:dtype_clash 2>&1 | filecheck %s --check-prefix=DTYPE
# RUN: not tempo-opt %s:shape_clash 2>&1 | filecheck %s --check-prefix=SHAPE
# RUN: not tempo-opt %s:user_error 2>&1 | filecheck %s --check-prefix=USER
# RUN: not tempo-opt %s:nothing 2>&1 | filecheck %s --check-prefix=NOTHING
# RUN: not tempo-opt %s 2>&1 | filecheck %s --check-prefix=SEVERAL
# RUN: not tempo-opt %s:gap --set width=3 2>&1 | filecheck %s --check-prefix=SETTING
# RUN: not tempo-opt %S/Inputs/broken_syntax.py 2>&1 | filecheck %s --check-prefix=SYNTAX

import tempo_ir as tp


@tp.program
def arity():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    # ARITY: broken_programs.py:[[# @LINE + 1]]:{{[0-9]+}}: error:
    tp.output("y", x[t, 0, 0])
    # ARITY-NOT: Traceback


@tp.program
def out_of_range():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    # RANGE: broken_programs.py:[[# @LINE + 1]]:{{[0-9]+}}: error: {{.*}}t = -1
    tp.output("y", tp.exp(x[t - 1]))
    # RANGE-NOT: Traceback


@tp.program
def gap():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    # GAP: broken_programs.py:[[# @LINE + 1]]:{{[0-9]+}}: error: {{.*}}t = 0
    y = tp.tensor("y", tp.f32[4], over=t)
    y[t > 0] = x
    tp.output("y", y)
    # GAP-NOT: Traceback


@tp.program
def cycle():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    # CYCLE: broken_programs.py:[[# @LINE + 1]]:{{[0-9]+}}: error: %y needs itself
    y = tp.tensor("y", tp.f32[4], over=t)
    y[t] = tp.exp(y) + x
    tp.output("y", y)
    # CYCLE-NOT: Traceback


@tp.program
def dtype_clash():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    y = tp.tensor("y", tp.i64[4], over=t)
    # DTYPE: broken_programs.py:[[# @LINE + 1]]:{{[0-9]+}}: error:
    y[t] = x
    tp.output("y", y)
    # DTYPE-NOT: Traceback


@tp.program
def shape_clash():
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[4], over=t)
    y = tp.input("y", tp.f32[5], over=t)
    # SHAPE: broken_programs.py:[[# @LINE + 1]]:{{[0-9]+}}: error: {{.*}}4{{.*}}5
    tp.output("z", x + y)
    # SHAPE-NOT: Traceback


@tp.program
def user_error():
    # USER: broken_programs.py:[[# @LINE + 2]]:{{[0-9]+}}: error: ValueError: invalid literal for int()
    # USER-NEXT: int("width")
    int("width")
    # USER-NOT: Traceback


# NOTHING: error: {{.*}}broken_programs.py: no @tp.program is called 'nothing'; it has arity, out_of_range, gap
# SEVERAL: error: {{.*}}broken_programs.py: it has several programs: choose one, as in {{.*}}broken_programs.py:arity
# SETTING: error: --set width: the program 'gap' has the settings none
# SYNTAX: broken_syntax.py:4:{{[0-9]+}}: error: SyntaxError:
# SYNTAX-NEXT: def program(:
