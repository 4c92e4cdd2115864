"""The registries: what they list loads, under the name that they give it; stock xDSL tools find it too."""

from __future__ import annotations

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

import tempo_ir
from tempo_ir import dialects, lowering, passes

ALL_PASSES = {**passes.get_all_passes(), **lowering.get_all_passes()}


@pytest.mark.parametrize("name", ALL_PASSES)
def test_passes_load_under_their_names(name):
    found = ALL_PASSES[name]()
    assert issubclass(found, ModulePass)
    assert found.name == name
    assert found.__doc__, "a pass says what it does"


@pytest.mark.parametrize("registry", [passes.get_all_passes(), lowering.get_all_passes(), lowering.get_all_targets()])
def test_registries_are_in_alphabetical_order(registry):
    assert list(registry) == sorted(registry)


@pytest.mark.parametrize("name", dialects.get_all_dialects())
def test_dialects_load_under_their_names(name):
    found = dialects.get_all_dialects()[name]()
    assert isinstance(found, Dialect)
    assert found.name == name


@pytest.mark.parametrize("name", lowering.get_all_targets())
def test_targets_load(name):
    found = lowering.get_all_targets()[name]()
    assert issubclass(found, Target)
    assert found.name == name


def test_every_public_name_loads():
    for name in dir(tempo_ir):
        assert getattr(tempo_ir, name) is not None


def test_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'tempo_ir' has no attribute 'nothing'"):
        _ = tempo_ir.nothing


def test_xdsl_finds_our_universe():
    multiverse = Universe.get_multiverse()
    assert {"sdg", "loop", "tile"} <= multiverse.all_dialects.keys()
    assert ALL_PASSES.keys() <= multiverse.all_passes.keys()
