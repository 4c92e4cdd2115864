"""Names of pointers that several launches share."""

from __future__ import annotations

import pytest

from tempo_ir.lowering.kernels.naming import common_name


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("w", "w"), "w"),
        (("x", "x_2", "x_13"), "x"),
        (("model_layers_0_norm_weight", "model_layers_1_norm_weight"), "norm_weight"),
        (("policy_0_weight", "critic_0_weight"), "weight"),
        (("net_up", "net_down"), "net"),
        (("left", "right"), None),
    ],
)
def test_common_name(names, expected):
    assert common_name(names) == expected
    assert common_name(names[::-1]) == expected
