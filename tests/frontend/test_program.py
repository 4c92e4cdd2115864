"""Programs: recording, printing, names and lines, settings, bounds, arguments and their errors."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from frontend_support import error_of, record
from xdsl.dialects.builtin import FileLineColLoc

import tempo_ir as tp
from tempo_ir import collection
from tempo_ir.dialects import sdg

ROOT = Path(__file__).parents[2]


@tp.program
def forward(batch=2, width=3):
    (i, I), (t, T) = tp.dims("i", "t")
    x, y = (tp.input(name, tp.f32[batch, width], over=(i, t)) for name in "xy")
    w = tp.parameter("w", tp.f32[width, width], init=0.1)
    s = tp.tensor("s", tp.f32[batch, width], over=(i, t))
    h = tp.tanh(x + s @ w)
    s[i, 0], s[i, t + 1] = 0.0, h
    d = h - y
    loss = tp.mean(d**2)
    tp.output("loss", tp.mean(loss[i, 0:T]))


def test_a_program_prints_as_its_graph() -> None:
    text = str(forward())
    header, *rest = text.splitlines()
    assert header.startswith("sdg.program @forward dims(i: I, t: T) where T >= 1")
    h = "tensor<2x3xf32>"
    assert [line.strip() for line in rest] == [
        f'%x = sdg.input "x" in (i, t) : {h}',
        f'%y = sdg.input "y" in (i, t) : {h}',
        '%w = sdg.parameter "w" : tensor<3x3xf32>',
        f"%s = sdg.merge {{t = 0 : %0, t > 0 : %h[i, t - 1]}} in (i, t) : ({h}, {h}) -> {h}",
        f'%1 = sdg.contract "bk,kn->bn" %s[i, t], %w in (i, t) : ({h}, tensor<3x3xf32>) -> {h}',
        f"%2 = sdg.add %x[i, t], %1[i, t] in (i, t) : ({h}, {h}) -> {h}",
        f"%h = sdg.tanh %2[i, t] in (i, t) : ({h}) -> {h}",
        f"%0 = sdg.constant 0.0 : {h}",
        f"%d = sdg.sub %h[i, t], %y[i, t] in (i, t) : ({h}, {h}) -> {h}",
        f"%3 = sdg.mul %d[i, t], %d[i, t] in (i, t) : ({h}, {h}) -> {h}",
        f"%loss = sdg.mean %3[i, t] axes [0, 1] in (i, t) : ({h}) -> tensor<f32>",
        "%4 = sdg.mean %loss[i, 0:T] axes [0] in (i) : (tensor<f32>) -> tensor<f32>",
        'sdg.output "loss" %4[i] in (i) : tensor<f32>',
        "}",
    ]


def test_the_recurrence_is_that_of_numpy() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 5, 2, 3)).astype(np.float32)
    out = forward().run(x=x, y=y)
    expected = []
    for i in range(4):
        state, losses = np.zeros((2, 3)), []
        for t in range(5):
            state = np.tanh(x[i, t] + state @ np.full((3, 3), 0.1))
            losses.append(np.mean((state - y[i, t]) ** 2))
        expected.append(np.mean(losses))
    np.testing.assert_allclose(out["loss"], expected, rtol=1e-5)


def test_every_op_has_the_line_of_the_user() -> None:
    first = forward.function.__code__.co_firstlineno
    lines = {}
    for op in forward().op.body.block.ops:
        assert isinstance(op.location, FileLineColLoc)
        assert op.location.filename.data == __file__
        lines.setdefault(op.name, op.location.line.data - first)
    assert lines["sdg.input"] == 3
    assert lines["sdg.merge"] == 5
    assert lines["sdg.contract"] == lines["sdg.tanh"] == 6
    assert lines["sdg.mean"] == 9


def test_descriptions() -> None:
    program = forward(width=4)
    assert program.settings == {"batch": 2, "width": 4}
    assert program.bounds == ("I", "T")
    assert program.inputs["x"].over == ("i", "t")
    assert str(program.inputs["x"].spec) == "f32[2, 4]"
    assert program.outputs["loss"].over == ("i",)
    assert program.states["w"].steps == ()
    assert repr(program).startswith("<program forward of ")


def test_unused_ops_are_dropped_and_inputs_stay() -> None:
    def program():
        t, T = tp.dim("t")
        x, y = tp.input("x", tp.f32[2], over=t), tp.input("y", tp.f32[2], over=t)
        tp.exp(y)
        tp.output("x2", x * 2)

    recorded = record(program)
    assert "sdg.exp" not in str(recorded)
    assert list(recorded.inputs) == ["x", "y"]


def test_derived_and_fixed_bounds() -> None:
    def program():
        (t, T), (e, E) = tp.dim("t"), tp.dim("e", 4)
        m, M = tp.dim("m", T * 8 // 4)
        assert E == 4
        tp.output("m", m + 10 * e)
        tp.output("t", t)

    recorded = record(program)
    assert recorded.bounds == ("T",)
    assert "dims(t: T, e: 4, m: " in str(recorded)
    assert recorded.run(T=3)["m"].shape == (4, 6)


def test_declared_relations_are_checked_at_the_call() -> None:
    def program():
        t, T = tp.dim("t")
        p, P = tp.dim("p", at_most=T, at_least=1)
        tp.output("y", p + t)

    recorded = record(program)
    assert recorded.run(T=3, P=2)["y"].shape == (3, 2)
    with pytest.raises(tp.ProgramError, match="'program' needs P <= T, got P = 4, T = 3"):
        recorded.run(T=3, P=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "the input 'x' is missing: 'program' takes the inputs x, y and the bounds T"),
        ({"x": np.zeros((3, 2), "f")}, "the input 'y' is missing"),
        ({"x": np.zeros((3, 2), "f"), "y": np.zeros(4)}, "input 'y' has T = 4, input 'x' has T = 3: they must agree"),
        ({"x": np.zeros((3, 2), "f"), "y": np.zeros(3), "T": 4}, "input 'x' has T = 3, the call has T = 4"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(3)}, "the input 'x' is f32, got an array of float64: convert it"),
        ({"x": np.zeros(3, "f"), "y": np.zeros(3)}, "'x' has the shape (T, 2), got an array of shape (3,)"),
        ({"x": np.zeros((3, 4), "f"), "y": np.zeros(3)}, "'x' has the shape (T, 2), got an array of shape (3, 4)"),
        ({"z": np.zeros(3)}, "no input or bound is called 'z'"),
        ({"T": -1}, "the bound T is a number of steps, 0 or more, got -1"),
        ({"x": np.zeros((2, 2), "f"), "y": np.zeros(2)}, "'program' needs T >= 3, got T = 2: sdg.sum"),
        ({"x": np.zeros((3, 2), "f"), "y": np.zeros(3), "state": {}}, "the state lacks 'w': make one with"),
        (
            {"x": np.zeros((3, 2), "f"), "y": np.zeros(3), "state": {"w": np.zeros(3, "f")}},
            "'w' is f32[2], the state has float32 of shape (3,)",
        ),
        ({"target": "gpu"}, "run() interprets: for target 'gpu', use tempo_ir.compile(program, target='gpu')"),
    ],
)  # fmt: skip
def test_errors_of_arguments(arguments, message) -> None:
    def program():
        t, T = tp.dim("t")
        x, y = tp.input("x", tp.f32[2], over=t), tp.input("y", tp.f64[()], over=t)
        w = tp.parameter("w", tp.f32[2])
        tp.output("z", x[0:3].sum() + y[0] + w.sum())

    with pytest.raises(tp.ProgramError) as raised:
        record(program).run(**arguments)
    assert message in str(raised.value)


def test_a_bound_that_no_input_gives_is_asked_for() -> None:
    def program():
        t, T = tp.dim("t")
        tp.output("y", t)

    with pytest.raises(tp.ProgramError, match=r"the bound T cannot be read off the inputs: give it, as in T=16"):
        record(program).run()


def test_errors_of_names() -> None:
    def program(kind, T=None):
        if kind == "setting":
            tp.dim("t")
        if kind == "input":
            tp.dim("i")
            tp.input("I", tp.f32[2])
        if kind == "twice":
            tp.dims("i", "i")
        if kind == "capital":
            tp.dim("I")
        if kind == "keyword":
            tp.input("state", tp.f32[2])
        if kind == "order":
            (i, _), (e, _) = tp.dims("i", "e")
            tp.input("x", tp.f32[2], over=(e, i))
        if kind == "bound":
            i, I = tp.dim("i")
            tp.input("x", tp.f32[2], over=I)
        if kind == "output":
            tp.output("y", 1)
            tp.output("y", 2)

    def text(kind: str) -> str:
        return error_of(program, kind=kind)

    assert "the bound 'T' has the name of the setting 'T'" in text("setting")
    assert "the input 'I' has the name of the bound 'I'" in text("input")
    assert "the dim 'i' has the name of the dim 'i'" in text("twice")
    assert "'I' cannot name a dim" in text("capital")
    assert "the input 'state' has the name of a call's own argument" in text("keyword")
    assert "list each once, in the order of their declaration, (i, e)" in text("order")
    assert "input 'x' varies over dims made by tp.dim, got 'I' (declared: i)" in text("bound")
    assert "the output 'y' has the name of the output 'y'" in text("output")


def test_conditions_have_no_truth_while_the_program_is_recorded() -> None:
    def program():
        t, T = tp.dim("t")
        tp.output("y", 1 if t < T - 1 else 0)

    assert "use it as a case (`x[t < T - 1] = ...`) or in tp.where" in error_of(program)


def test_settings() -> None:
    with pytest.raises(tp.ProgramError, match="has no setting 'size'; its settings are batch, width"):
        forward(size=3)

    @tp.program
    def needs(size):
        tp.output("y", size)

    with pytest.raises(tp.ProgramError, match="needs a value for its setting 'size'"):
        needs()


def test_programs_are_loaded_from_files(tmp_path) -> None:
    path = tmp_path / "double.py"
    path.write_text(
        textwrap.dedent("""
        import tempo_ir as tp

        @tp.program
        def double(factor=2, name="y"):
            t, T = tp.dim("t")
            tp.output(name, tp.input("x", tp.f32[()], over=t) * factor)
        """)
    )
    program = tp.load_program(path, settings={"factor": "3", "name": "z"})
    assert program.run(x=np.ones(2, np.float32))["z"].tolist() == [3, 3]
    assert tp.load_program(path, "double").settings == {"factor": 2, "name": "y"}
    with pytest.raises(tp.ProgramError, match="defines no program 'triple': it defines double"):
        tp.load_program(path, "triple")
    with pytest.raises(tp.ProgramError, match="does not exist"):
        tp.load_program(tmp_path / "none.py")
    (tmp_path / "empty.py").write_text("x = 1\n")
    with pytest.raises(tp.ProgramError, match=r"defines 0 programs \(none\): pick one, as in "):
        tp.load_program(tmp_path / "empty.py")


def test_a_program_inside_a_program_is_refused() -> None:
    def program():
        forward()

    assert "program 'forward' is made inside program 'program': call it outside" in error_of(program)


def test_trees_of_outputs_and_records() -> None:
    def program():
        x = tp.input("x", tp.f32[2])
        r = tp.record(a=x, b=[x + 1, x + 2])
        assert r.map(lambda leaf: leaf * 2).b[0].shape == (2,)
        tp.output("r", tp.stop_gradient(r))

    out = record(program).run(x=np.zeros(2, np.float32))
    assert list(out) == ["r.a", "r.b.0", "r.b.1"]

    def missing():
        _ = tp.record(a=1).b

    assert "the record has no 'b', it has a" in error_of(missing)


def test_every_public_name_loads() -> None:
    for name in dir(tp):
        assert getattr(tp, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tp.nothing


def test_specs_and_settings_that_are_none() -> None:
    def program():
        tp.input("x", (16, 64))

    assert "input 'x': a spec is a dtype with a shape, as in tp.f32[16, 64], got (16, 64)" in error_of(program)

    def scalar():
        tp.output("y", tp.input("x", tp.f32) + 1)

    assert record(scalar).run(x=np.float32(1))["y"] == 2
    with pytest.raises(tp.ProgramError, match=r"the settings of 'forward' are given by name: batch=..., width=..."):
        forward(16)


def test_every_module_may_be_the_first_that_is_imported() -> None:
    """`tp.arange` before `tp.dim`: no module needs another one to have been imported before."""
    script = """
        import importlib, pkgutil, sys
        import tempo_ir.frontend
        names = [f"tempo_ir.frontend.{module.name}" for module in pkgutil.iter_modules(tempo_ir.frontend.__path__)]
        for name in names:
            for loaded in [other for other in sys.modules if other.startswith("tempo_ir.frontend.")]:
                del sys.modules[loaded]
            importlib.import_module(name)
        print(len(names))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_no_collection_of_cycles_stops_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of many objects one takes longer than the recording."""
    monkeypatch.setattr(collection, "UNSEEN", collection.Unseen())
    begun: list[int] = []

    def heard(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            begun.append(1)

    @tp.program
    def long():
        t, _ = tp.dim("t")
        value = tp.input("x", tp.f32[4], over=t)
        for _ in range(300):
            value = value * 0.5 + 1.0
        tp.output("y", value)

    gc.callbacks.append(heard)
    try:
        long()
        assert gc.isenabled()
    finally:
        gc.callbacks.remove(heard)
    assert not begun


def test_what_is_left_of_programs_goes_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are cycles, which no collection of a process that makes nothing but programs would come across."""
    monkeypatch.setattr(collection, "MANY", 20_000)
    monkeypatch.setattr(collection, "UNSEEN", collection.Unseen())

    @tp.program
    def chain(steps=50):
        t, _ = tp.dim("t")
        value = tp.input("x", tp.f32[2], over=t)
        for _ in range(steps):
            value = value * 0.5 + 1.0
        tp.output("y", value)

    def alive() -> int:
        return sum(type(candidate) is sdg.ProgramOp for candidate in gc.get_objects())

    gc.collect()
    before = alive()
    for _ in range(40):
        chain()
    assert alive() - before < 40
    assert gc.isenabled()
