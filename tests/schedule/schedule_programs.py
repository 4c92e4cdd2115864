"""
Small sdg programs with every kind of recurrence that the scheduler meets, as IR text by name.

The programs of `SCHEDULABLE` have an order, those of `NEEDS_ISL` one that needs skewed loops; the programs of
`IMPOSSIBLE` have none.
"""

from __future__ import annotations

RNN = """
sdg.program @rnn dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %h0 = sdg.constant 0.5 : tensor<3xf32>
  %s = sdg.merge {t = 0 : %h0, t > 0 : %h[t - 1]} in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %a = sdg.add %x[t], %s[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.tanh %a[t] in (t) : (tensor<3xf32>) -> tensor<3xf32>
  %y = sdg.mul %h[t], %h[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "y" %y[t] in (t) : tensor<3xf32>
}
"""


def attention(first: str, size: str) -> str:
    """Attention of each step over the rows from `first` to the step itself, `size` in number."""
    scores = f"tensor<?xf32, #sdg.size<{size}>>"
    return f"""
sdg.program @attention dims(t: T) {{
  %p0 = sdg.parameter "first" : tensor<4xf32>
  %token = sdg.merge {{t = 0 : %p0, t > 0 : %o[t - 1]}} in (t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %x = sdg.tanh %token[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %q = sdg.neg %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %k = sdg.exp %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %v = sdg.sin %x[t] in (t) : (tensor<4xf32>) -> tensor<4xf32>
  %score = sdg.contract "d,nd->n" %q[t], %k[{first}:t + 1] in (t) : (tensor<4xf32>, tensor<4xf32>) -> {scores}
  %p = sdg.softmax %score[t] axis 0 in (t) : ({scores}) -> {scores}
  %o = sdg.contract "n,nd->d" %p[t], %v[{first}:t + 1] in (t) : ({scores}, tensor<4xf32>) -> tensor<4xf32>
  sdg.output "o" %o[t] in (t) : tensor<4xf32>
}}
"""


REINFORCE = """
sdg.program @reinforce dims(i: I, t: T) {
  %w = sdg.parameter "theta" : tensor<f32>
  %noise = sdg.random uniform id 1 in (i, t) : tensor<f32>
  %theta = sdg.merge {i = 0 : %w, i > 0 : %next[i - 1]} in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %obs = sdg.merge {t = 0 : %w, t > 0 : %env[i, t - 1]} in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %logit = sdg.mul %obs[i, t], %theta[i] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %act = sdg.add %logit[i, t], %noise[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %sum = sdg.add %act[i, t], %obs[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %env = sdg.tanh %sum[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  %r = sdg.neg %env[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %later = sdg.merge {t < T - 1 : %G[i, t + 1], t = T - 1 : %zero} in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %G = sdg.add %r[i, t], %later[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g0 = sdg.mul %G[i, t], %act[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.mul %g0[i, t], %theta[i] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %gs = sdg.sum %g[i, 0:T] axes [0] in (i) : (tensor<f32>) -> tensor<f32>
  %small = sdg.tanh %gs[i] in (i) : (tensor<f32>) -> tensor<f32>
  %next = sdg.sub %theta[i], %small[i] in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %last = sdg.merge {I = 0 : %w, I > 0 : %next[I - 1]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "theta" %last : tensor<f32>
  sdg.output "return" %G[i, t] in (i, t) : tensor<f32>
}
"""

N_STEP = """
sdg.program @n_step dims(i: I, t: T) where T >= 1 {
  %w = sdg.parameter "theta" : tensor<f32>
  %theta = sdg.merge {i = 0 : %w, i > 0 : %next[i - 1]} in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %obs = sdg.merge {t = 0 : %w, t > 0 : %env[i, t - 1]} in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %act = sdg.mul %obs[i, t], %theta[i] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %val = sdg.sub %obs[i, t], %theta[i] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %env = sdg.sin %act[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  %r = sdg.cos %env[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  %rs = sdg.sum %r[i, t:min(t + 3, T)] axes [0] in (i, t) : (tensor<f32>) -> tensor<f32>
  %ret = sdg.add %rs[i, t], %val[i, min(t + 3, T - 1)] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.mul %ret[i, t], %val[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %before = sdg.merge {t = 0 : %zero, t > 0 : %ga[i, t - 1]} in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %ga = sdg.add %before[i, t], %g[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %step = sdg.tanh %ga[i, T - 1] in (i) : (tensor<f32>) -> tensor<f32>
  %next = sdg.sub %theta[i], %step[i] in (i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "theta" %theta[i] in (i) : tensor<f32>
  sdg.output "gradient" %ga[i, t] in (i, t) : tensor<f32>
}
"""

PPO = """
sdg.program @ppo dims(i: I, t: T, e: 2, m: T floordiv 4) where T >= 4 {
  %w = sdg.parameter "theta" : tensor<f32>
  %theta = sdg.merge {m > 0 : %next[i, e, m - 1], e > 0 : %next[i, e - 1, T floordiv 4 - 1],
      i > 0 : %next[i - 1, 1, T floordiv 4 - 1], i = 0 : %w} in (i, e, m)
      : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %obs = sdg.merge {t = 0 : %w, t > 0 : %env[i, t - 1]} in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %act = sdg.mul %obs[i, t], %theta[i, 0, 0] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %val = sdg.sub %obs[i, t], %theta[i, 0, 0] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %env = sdg.sin %act[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %later = sdg.merge {t < T - 1 : %adv[i, t + 1], t = T - 1 : %zero} in (i, t)
      : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %delta = sdg.sub %val[i, min(t + 1, T - 1)], %val[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %adv = sdg.add %delta[i, t], %later[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %batch = sdg.mul %adv[i, 4 * m:4 * m + 4], %obs[i, 4 * m:4 * m + 4] in (i, e, m)
      : (tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %mean = sdg.mean %batch[i, e, m] axes [0] in (i, e, m) : (tensor<4xf32>) -> tensor<f32>
  %g = sdg.mul %mean[i, e, m], %theta[i, e, m] in (i, e, m) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %next = sdg.sub %theta[i, e, m], %g[i, e, m] in (i, e, m) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "theta" %next[i, e, m] in (i, e, m) : tensor<f32>
}
"""


def layers(count: int) -> str:
    """Residual blocks with attention over all earlier steps, fed back through the last one."""
    vector, scores = "tensor<2xf32>", "tensor<?xf32, #sdg.size<t + 1>>"
    lines = [
        "sdg.program @layers dims(t: T) {",
        f'  %p0 = sdg.parameter "first" : {vector}',
        f"  %y = sdg.merge {{t = 0 : %p0, t > 0 : %x{count}[t - 1]}} in (t) : ({vector}, {vector}) -> {vector}",
        f"  %x0 = sdg.sin %y[t] in (t) : ({vector}) -> {vector}",
    ]
    for n in range(count):
        lines += [
            f"  %n{n} = sdg.tanh %x{n}[t] in (t) : ({vector}) -> {vector}",
            f"  %q{n} = sdg.neg %n{n}[t] in (t) : ({vector}) -> {vector}",
            f"  %k{n} = sdg.exp %n{n}[t] in (t) : ({vector}) -> {vector}",
            f'  %s{n} = sdg.contract "d,nd->n" %q{n}[t], %k{n}[0:t + 1] in (t) : ({vector}, {vector}) -> {scores}',
            f"  %w{n} = sdg.softmax %s{n}[t] axis 0 in (t) : ({scores}) -> {scores}",
            f'  %o{n} = sdg.contract "n,nd->d" %w{n}[t], %k{n}[0:t + 1] in (t) : ({scores}, {vector}) -> {vector}',
            f"  %x{n + 1} = sdg.add %x{n}[t], %o{n}[t] in (t) : ({vector}, {vector}) -> {vector}",
        ]
    return "\n".join([*lines, f'  sdg.output "x" %x{count}[t] in (t) : {vector}', "}"])


TWO_RETURNS = """
sdg.program @two_returns dims(t: T) where T >= 1 {
  %w = sdg.parameter "first" : tensor<f32>
  %obs = sdg.merge {t = 0 : %w, t > 0 : %env[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %feature = sdg.sum %obs[max(0, t - 3):t + 1] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  %v = sdg.tanh %feature[t] in (t) : (tensor<f32>) -> tensor<f32>
  %env = sdg.cos %feature[t] in (t) : (tensor<f32>) -> tensor<f32>
  %r = sdg.sin %env[t] in (t) : (tensor<f32>) -> tensor<f32>
  %td = sdg.add %r[t], %v[min(t + 1, T - 1)] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %G = sdg.sum %r[t:T] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  %mix = sdg.mul %td[t], %G[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.sub %mix[t], %v[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %zero = sdg.constant 0.0 : tensor<f32>
  %before = sdg.merge {t = 0 : %zero, t > 0 : %ga[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %ga = sdg.add %before[t], %g[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "ga" %ga[t] in (t) : tensor<f32>
}
"""

DIFFUSION = """
sdg.program @diffusion dims(b: B, t: T) where T >= 1 {
  %noise = sdg.input "noise" in (b) : tensor<3xf32>
  %time = sdg.index t + 1 in (t) : tensor<i64>
  %as_float = sdg.cast %time[t] in (t) : (tensor<i64>) -> tensor<f32>
  %alpha = sdg.rsqrt %as_float[t] in (t) : (tensor<f32>) -> tensor<f32>
  %x = sdg.merge {t = T - 1 : %noise[b], t < T - 1 : %denoised[b, t + 1]} in (b, t)
      : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %eps = sdg.tanh %x[b, t] in (b, t) : (tensor<3xf32>) -> tensor<3xf32>
  %scaled = sdg.mul %eps[b, t], %alpha[t] in (b, t) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %denoised = sdg.sub %x[b, t], %scaled[b, t] in (b, t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "image" %denoised[b, 0] in (b) : tensor<3xf32>
}
"""

TRIANGLE = """
sdg.program @triangle dims(i: I, j: I) where I >= 1 {
  %x = sdg.input "x" in (i) : tensor<f32>
  %p = sdg.mul %x[i], %x[j] in (i, j where j <= i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %c = sdg.merge {j = 0 : %p[i, 0], j > 0 : %s[i, j - 1]} in (i, j where j <= i)
      : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %s = sdg.add %c[i, j], %p[i, j] in (i, j where j <= i) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %tail = sdg.add %x[i], %x[i - 1] in (i: 1 to I) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %copy = sdg.index 2 * i + 1 in (i) : tensor<i64>
  %all = sdg.sum %copy[0:I] axes [0] : (tensor<i64>) -> tensor<i64>
  sdg.output "last" %s[i, i] in (i) : tensor<f32>
  sdg.output "x" %x[I - 1 - i] in (i) : tensor<f32>
  sdg.output "tail" %tail[i] in (i: 1 to I) : tensor<f32>
  sdg.output "all" %all : tensor<i64>
  sdg.output "index" %copy[i] in (i) : tensor<i64>
}
"""

SKEWED = """
sdg.program @skewed dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<f32>
  %a = sdg.merge {i > 0 and t < T - 1 : %h[i - 1, t + 1], i <= 0 : %x[i, t], t >= T - 1 : %x[i, t]} in (i, t)
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %b = sdg.merge {t > 1 and i < I - 1 : %h[i + 1, t - 2], t <= 1 : %x[i, t], i >= I - 1 : %x[i, t]} in (i, t)
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.add %a[i, t], %b[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "h" %h[i, t] in (i, t) : tensor<f32>
}
"""

TURNING = """
sdg.program @turning dims(t: T + T) where T >= 1 {
  %x = sdg.input "x" in (t) : tensor<f32>
  %s = sdg.merge {0 < t < T : %h[t - 1], T <= t < T + T - 1 : %h[t + 1], t = 0 : %x[t], t > 0 : %x[t]} in (t)
      : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "h" %h[t] in (t) : tensor<f32>
}
"""

BY_PARITY = """
sdg.program @parity dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %s = sdg.merge {t mod 2 = 1 : %h[t - 1], t mod 2 = 0 and t + 2 < T : %h[t + 2], true : %x[t]} in (t)
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "h" %h[t] in (t) : tensor<f32>
}
"""

MIRRORED = """
sdg.program @mirrored dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<f32>
  %s = sdg.merge {t > T - 1 - t : %h[i, T - 1 - t], i > 0 : %h[i - 1, T - 1], true : %x[i, t]} in (i, t)
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.tanh %s[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  sdg.output "h" %h[i, t] in (i, t) : tensor<f32>
}
"""

OPPOSITE = """
sdg.program @opposite dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<f32>
  %before = sdg.merge {t > 0 : %f[i, t - 1], i > 0 : %g[i - 1, 0], true : %x[i, t]} in (i, t)
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %f = sdg.tanh %before[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  %after = sdg.merge {t + 1 < T : %g[i, t + 1], true : %f[i, T - 1 - t]} in (i, t)
      : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = sdg.sin %after[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  sdg.output "g" %g[i, t] in (i, t) : tensor<f32>
}
"""

BOTH_WAYS_AND_SKEWED = """
sdg.program @both dims(i: I, t: T) {
  %x = sdg.input "x" in (i, t) : tensor<f32>
  %a = sdg.merge {i > 0 and t + 1 < T : %s[i - 1, t + 1], true : %x[i, t]} in (i, t)
      : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %b = sdg.merge {i + 1 < I and t > 1 : %s[i + 1, t - 2], true : %x[i, t]} in (i, t)
      : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %s = sdg.add %a[i, t], %b[i, t] in (i, t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %h = sdg.merge {t < T floordiv 2 and t > 0 : %k[i, t - 1], t >= T floordiv 2 and t + 1 < T : %k[i, t + 1],
                  true : %s[i, t]} in (i, t) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %k = sdg.tanh %h[i, t] in (i, t) : (tensor<f32>) -> tensor<f32>
  sdg.output "k" %k[i, t] in (i, t) : tensor<f32>
}
"""

CYCLE_SAME_STEP = """
sdg.program @cycle dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %x = sdg.add %a[t], %y[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %y = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}
"""

CYCLE_BOTH_WAYS = """
sdg.program @cycle dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %past = sdg.merge {t > 0 : %x[t - 1], t = 0 : %a[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %future = sdg.merge {t < T - 1 : %x[t + 1], t = T - 1 : %a[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %x = sdg.add %past[t], %future[t] in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "x" %x[t] in (t) : tensor<f32>
}
"""

CYCLE_THROUGH_SUM = """
sdg.program @cycle dims(t: T) {
  %a = sdg.input "a" in (t) : tensor<f32>
  %x = sdg.merge {t = 0 : %a[t], t > 0 : %y[t - 1]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %y = sdg.sum %z[0:T] axes [0] in (t) : (tensor<f32>) -> tensor<f32>
  %z = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t) : tensor<f32>
}
"""

LATE_CYCLE = """
sdg.program @cycle dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %a = sdg.exp %b[t floordiv 2] in (t) : (tensor<f32>) -> tensor<f32>
  %b = sdg.merge {t + 30 < T : %a[t + 30], true : %x[t]} in (t) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  sdg.output "b" %b[t] in (t) : tensor<f32>
}
"""

CHECKPOINTS = """
sdg.program @checkpoints dims(b: (T + 3) floordiv 4, j: 4, t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32>
  %zero = sdg.constant 0.0 : tensor<3xf32>
  %s = sdg.merge {b = 0 and j = 0 : %zero, j > 0 : %h[b, j - 1], true : %h[b - 1, 3]}
    in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %a = sdg.add %x[4 * b + j], %s[b, j]
    in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h = sdg.tanh %a[b, j] in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>) -> tensor<3xf32>
  %s2 = sdg.merge {b = 0 and j = 0 : %zero, j > 0 : %h2[b, j - 1], true : %h[b - 1, 3]}
    in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %a2 = sdg.add %x[4 * b + j], %s2[b, j]
    in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %h2 = sdg.tanh %a2[b, j] in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>) -> tensor<3xf32>
  %n = sdg.merge {4 * b + j = T - 1 : %zero, j < 3 : %g[b, j + 1], true : %g[b + 1, 0]}
    in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %p = sdg.mul %h2[b, j], %h2[b, j] in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %g = sdg.add %p[b, j], %n[b, j] in (b, j: 0 to min(4, T - 4 * b)) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %first = sdg.merge {T = 0 : %zero, true : %g[0, 0]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  sdg.output "first" %first : tensor<3xf32>
}
"""

SCHEDULABLE = {
    "rnn": RNN,
    "attention": attention("0", "t + 1"),
    "window": attention("max(0, t - 2)", "min(t + 1, 3)"),
    "reinforce": REINFORCE,
    "n_step": N_STEP,
    "ppo": PPO,
    "layers": layers(3),
    "two_returns": TWO_RETURNS,
    "diffusion": DIFFUSION,
    "triangle": TRIANGLE,
    "turning": TURNING,
    "by_parity": BY_PARITY,
    "mirrored": MIRRORED,
    "opposite": OPPOSITE,
    "checkpoints": CHECKPOINTS,
}

NEEDS_ISL = {"skewed": SKEWED, "both_ways_and_skewed": BOTH_WAYS_AND_SKEWED}

IMPOSSIBLE = {
    "same_step": CYCLE_SAME_STEP,
    "both_ways": CYCLE_BOTH_WAYS,
    "through_sum": CYCLE_THROUGH_SUM,
    "late": LATE_CYCLE,
}
