"""How far rounding may move outputs."""

from __future__ import annotations

import numpy as np

from tests.fuzz.check import parse, program_of
from tests.fuzz.rounding import rounded_otherwise

FLAT = """
builtin.module {
  sdg.program @flat dims() {
    %0 = sdg.parameter "w" : tensor<4xf32>
    %1 = sdg.constant 1.0 : tensor<f32>
    %2 = sdg.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    %3 = sdg.mul %2, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = sdg.sub %1, %3 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = sdg.max %0 axes [0] : (tensor<4xf32>) -> tensor<f32>
    sdg.output "single0" %4 : tensor<4xf32>
    sdg.output "single1" %5 : tensor<f32>
  }
}
"""


def test_what_is_lost_behind_a_flat_function_is_seen():
    """However little arguments move, `1 - tanh(x) ** 2` is what rounding leaves of it; a greatest value is exact."""
    program = program_of(parse(FLAT))
    arguments = {"w": np.array([12, 13, 14, 15], np.float32)}
    outputs = rounded_otherwise(program, arguments, {}, 0, {}, 0.0)
    unit = float(np.finfo(np.float32).eps) / 2
    assert unit <= np.max(np.abs(outputs["single0"])) <= 8 * unit
    assert outputs["single1"] == 15
