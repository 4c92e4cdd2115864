"""Programs compiled before: loaded from disk, with no pass run, by this process or another, or from a file."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.kept import DIRECTORY, SIZE
from tempo_ir.lowering.llvm import engine
from tempo_ir.passes.remarks import collecting
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime import cache, native
from tempo_ir.runtime import executable as executables
from tempo_ir.runtime.cache import Cache, key_of
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.runtime.packed import Damaged, Packed, parse_module


class Counter:
    def __init__(self) -> None:
        self.total = 0

    def add(self, x: np.ndarray) -> np.ndarray:
        if x > 90:
            raise OverflowError("too much for a counter")
        self.total += int(x)
        return np.array(self.total, np.int64)


@tp.program
def running(width=4):
    t, T = tp.dim("t")
    x = tp.input("x", tp.f32[width], over=t)
    tp.output("y", tp.sum(x[0 : t + 1], axis=0))


@tp.program
def training():
    i, I = tp.dim("i")
    w = tp.state("w", tp.f32[3], init=1.0, steps=i)
    x = tp.input("x", tp.f32[3])
    loss = tp.sum((w[i] * x - 1.0) ** 2)
    w.next = w[i] - 0.1 * tp.grad(loss, w[i])
    tp.output("loss", loss)


@tp.program
def counting():
    t, T = tp.dim("t")
    x = tp.input("x", tp.i64[()], over=t)
    tp.output("total", tp.host(Counter).add(x, returns=tp.i64[()]) * 2)


@tp.program
def looking_up():
    t, T = tp.dim("t")
    table = tp.input("table", tp.f32[5, 2])
    number = tp.input("number", tp.i64[()], over=t)
    tp.output("row", table[number])


@tp.program
def until_three():
    t, T = tp.dim("t", until=lambda: done)
    x = tp.input("x", tp.i64[()], over=t)
    done = x == 3
    tp.output("y", x + 1)


@pytest.fixture
def cache_directory(tmp_path, monkeypatch):
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_pass(monkeypatch) -> Callable[[], None]:
    """Called, no program can be lowered any more."""

    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("a pass runs")

    return lambda: monkeypatch.setattr(executables, "lower", fail)


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.tempo"))


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_the_second_compile_runs_no_pass(cache_directory, no_pass):
    first = tp.compile(running())
    assert not first.stats.cached
    assert first.stats.compiles == 1
    no_pass()
    second = tp.compile(running())
    assert second.stats.cached
    assert second.stats.compiles == 0
    np.testing.assert_array_equal(second(x=X)["y"], first(x=X)["y"])
    for name in ("kernels", "launches", "launches_per_step", "peak_bytes", "bytes_by_class"):
        assert getattr(second.stats, name) == getattr(first.stats, name)
    assert len(entries(cache_directory)) == 1


def test_what_was_loaded_has_its_levels_of_ir(cache_directory):
    first, second = tp.compile(running()), tp.compile(running())
    assert second.stats.cached
    for level in ("sdg", "loop", "tile", "llvm", "triton"):
        assert second.ir(level) == first.ir(level)
    assert tp.memory_timeline(second, T=3).peak == tp.memory_timeline(first, T=3).peak


def test_states_and_their_first_values(cache_directory, no_pass):
    x = np.array([1, 2, 3], np.float32)
    first = tp.compile(training())(x=x, I=5, donate=True)
    no_pass()
    second = tp.compile(training())(x=x, I=5, donate=True)
    np.testing.assert_array_equal(second["loss"], first["loss"])
    np.testing.assert_array_equal(second.state["w"], first.state["w"])


def test_host_objects_and_what_they_raise(cache_directory, no_pass):
    tp.compile(counting())
    no_pass()
    executable = tp.compile(counting())
    assert executable(x=np.array([1, 2, 3]))["total"].tolist() == [2, 6, 12]
    with pytest.raises(OverflowError, match="too much") as raised:
        executable(x=np.array([1, 91]))
    assert "t = 1" in raised.value.__notes__[0]
    assert "test_cache.py" in raised.value.__notes__[0]


def test_run_time_errors_name_the_line(cache_directory, no_pass):
    table = np.zeros((5, 2), np.float32)
    messages: list[str] = []
    for _ in range(2):
        with pytest.raises(ExecutionError) as raised:
            tp.compile(looking_up())(table=table, number=np.array([1, 7]))
        messages.append(str(raised.value))
        no_pass()
    assert messages[0] == messages[1]
    assert "test_cache.py" in messages[0]


def test_a_dim_that_ends_by_data(cache_directory, no_pass):
    tp.compile(until_three())
    no_pass()
    result = tp.compile(until_three())(x=np.array([1, 2, 3, 4, 5]))
    assert result["y"].tolist() == [2, 3, 4]
    assert result.extents["t"] == 3


OPTIONS: list[dict[str, object]] = [
    {"without": ["sdg-unlift"]},
    {"check": False},
    {"memory_budget": 1 << 20},
    {"memory_budget": 1 << 20, "sizes": {"T": 3}},
    {"remat": {"budget": 1 << 20}},
    {"options": {"sdg-vectorize": {"dims": ("t",)}}},
    {"options": {"sdg-vectorize": {"dims": ("t",)}, "sdg-accumulate": {"memory": 0}}},
]


def test_other_options_are_other_entries(cache_directory):
    tp.compile(running())
    for count, options in enumerate(OPTIONS, 2):
        assert not tp.compile(running(), **options).stats.cached
        assert len(entries(cache_directory)) == count
    assert all(tp.compile(running(), **options).stats.cached for options in OPTIONS)


def test_another_program_is_another_entry(cache_directory):
    tp.compile(running())
    assert not tp.compile(running(width=5)).stats.cached

    @tp.program  # the same in other lines, which its errors name
    def running_elsewhere():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f32[4], over=t)
        tp.output("y", tp.sum(x[0 : t + 1], axis=0))

    assert not tp.compile(running_elsewhere()).stats.cached


TEXT = """
sdg.program @p dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<3xf32> loc("m.py":1:1)
  %z = sdg.input "z" in (t) : tensor<3xf32> loc("m.py":1:1)
  %y = sdg.sub %x[t], %z[t] in (t) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> loc("m.py":2:1)
  %c = sdg.constant 0.0 : tensor<f32>
  %d = sdg.constant dense<0.0> : tensor<2xf32>
  %e = sdg.constant dense<"0x0000008000000000"> : tensor<2xf32>
  sdg.output "y" %y[t] in (t) : tensor<3xf32>
  sdg.output "c" %c : tensor<f32>
  sdg.output "d" %d : tensor<2xf32>
  sdg.output "e" %e : tensor<2xf32>
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sub %x[t], %z[t]", "sub %z[t], %x[t]"),
        ("sub", "add"),
        ('"m.py":2:1', '"m.py":3:1'),
        ("%y", "%h"),
        ("constant 0.0", "constant -0.0"),
        ("constant dense<0.0>", 'constant dense<"0x0000000000000080">'),
        ('constant dense<"0x0000008000000000">', "constant dense<-0.0>"),
        ("3x", "4x"),
        ('output "y" %y[t]', 'output "y" %x[t]'),
        ('output "c"', 'output "b"'),
        ("dims(t: T)", "dims(t: T) where T >= 2"),
    ],
)
def test_whatever_differs_gives_another_key(old: str, new: str):
    module, other = parse_module(TEXT), parse_module(TEXT.replace(old, new))
    assert key_of(module) == key_of(parse_module(TEXT)) == key_of(module.clone())
    assert key_of(module, 1) != key_of(module) != key_of(other)


def test_another_machine_or_another_version_is_another_entry(cache_directory, monkeypatch):
    """The processor, what it can do, and the versions of who makes code."""
    made = {tp.compile(running()).stats.cached}
    here = executables.host_target()
    for other in (dataclasses.replace(here, cpu="mill1"), dataclasses.replace(here, features="+belt")):
        monkeypatch.setattr(executables, "host_target", lambda other=other: other)
        made.add(tp.compile(running()).stats.cached)
    monkeypatch.setattr(executables, "host_target", lambda: here)
    versions = cache.versions()
    for number in range(len(versions)):
        newer = (*versions[:number], "newer", *versions[number + 1 :])
        monkeypatch.setattr(cache, "versions", lambda newer=newer: newer)
        made.add(tp.compile(running()).stats.cached)
    assert made == {False}
    assert len(entries(cache_directory)) == 3 + len(versions)
    monkeypatch.undo()


def test_the_version_is_that_of_the_sources():
    """Of the files as they are, and of the libraries by their numbers."""
    ours, sources, xdsl, isl, llvm = cache.versions()
    assert ours == tp.__version__
    assert len(sources) == 64
    assert xdsl.count(".") >= 2
    assert isl.count(".") >= 1
    assert llvm.count(".") == 2


def test_the_second_compile_generates_no_code(cache_directory, monkeypatch):
    """No text of LLVM is written, and none parsed, optimised or made machine code of, but the functions of a team."""
    expected = tp.compile(running())(x=X)["y"]
    for module, name in ((native, "ModuleLowering"), (engine, "_optimised"), (executables, "lower")):
        monkeypatch.setattr(module, name, None)
    executable = tp.compile(running())
    assert executable.stats.cached
    np.testing.assert_array_equal(executable(x=X)["y"], expected)


def test_an_entry_that_cannot_be_written_whole_is_none(cache_directory, monkeypatch):
    """The disk is full, or the process ends: before its name is given to it, a file is somebody's part."""
    cache_directory.mkdir()
    seen: list[str] = []

    def full(part, whole) -> None:
        seen.append(Path(part).suffix)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    assert tp.compile(running())(x=X)["y"].shape == (3, 4)
    assert seen == [".part", ".part"]  # what is known of the program, and its code
    assert list(cache_directory.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_damaged_entries_are_made_anew(cache_directory, damage):
    expected = tp.compile(running())(x=X)["y"]
    (entry,) = entries(cache_directory)
    whole = entry.read_bytes()
    changed = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    entry.write_bytes({"cut": whole[:-5], "empty": b"", "changed": changed}[damage])
    executable = tp.compile(running())
    assert not executable.stats.cached
    np.testing.assert_array_equal(executable(x=X)["y"], expected)
    assert tp.compile(running()).stats.cached


SCRIPT = """
import numpy as np, tempo_ir as tp
from test_cache import X, running
executable = tp.compile(running())
print(executable.stats.cached, executable(x=X)["y"].sum())
"""


def test_processes_at_the_same_time_and_after(cache_directory):
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command, environment = [sys.executable, "-c", SCRIPT], {**os.environ, "PYTHONPATH": path}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate()[0].split() for process in both]
    third = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert [process.returncode for process in both] == [0, 0]
    assert third[0] == "True"
    assert {answer[1] for answer in answers} == {third[1]}
    assert sorted(path.suffix for path in cache_directory.iterdir()) == [".recorded", ".tempo"]


def test_the_entries_used_least_recently_go(cache_directory, monkeypatch):
    tp.compile(running())
    size = entries(cache_directory)[0].stat().st_size
    monkeypatch.setenv(SIZE, str(size * 5 // 2))
    for width in (5, 6):
        for age, entry in enumerate(entries(cache_directory)):
            os.utime(entry, (1000 + age, 1000 + age))
        assert tp.compile(running()).stats.cached  # which makes it the one used last
        tp.compile(running(width=width))
    assert len(entries(cache_directory)) == 2
    assert tp.compile(running()).stats.cached
    assert tp.compile(running(width=6)).stats.cached
    assert not tp.compile(running(width=5)).stats.cached


def test_where_nothing_is_kept(cache_directory, tmp_path, monkeypatch):
    tp.compile(running(), cache=False)
    assert not cache_directory.exists()
    with collecting() as collector:  # who listens hears the passes
        tp.compile(running())
        tp.compile(running())
    assert collector.statistics
    assert not cache_directory.exists()
    monkeypatch.setenv(DIRECTORY, "")
    tp.compile(running())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "file" / "below"))  # which cannot be made
    assert not tp.compile(running()).stats.cached
    assert not tp.compile(running()).stats.cached


def test_the_place_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv(DIRECTORY, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tp.compile(running())
    assert len(entries(tmp_path / "tempo_ir")) == 1


def test_a_size_that_is_none(cache_directory, monkeypatch):
    monkeypatch.setenv(SIZE, "much")
    with pytest.raises(CompileError, match="TEMPO_CACHE_BYTES is 'much': give the bytes"):
        tp.compile(running())


# ---- files ----


def test_a_saved_program_is_loaded_without_a_compile(tmp_path, no_pass):
    x = np.array([1, 2, 3], np.float32)
    compiled = tp.compile(training())
    compiled.save(tmp_path / "training.tempo")
    no_pass()
    loaded = tp.load(tmp_path / "training.tempo")
    state = compiled.init(0)
    np.testing.assert_array_equal(loaded(x=x, I=5, state=state)["loss"], compiled(x=x, I=5, state=state)["loss"])
    assert loaded.stats.kernels == compiled.stats.kernels
    assert loaded.ir("sdg") == compiled.ir("sdg")
    with pytest.raises(CallError, match="pass state="):
        loaded(x=x, I=5)


def test_a_loaded_program_is_saved_again_and_lowered_again(tmp_path):
    compiled = tp.compile(running(), without=["sdg-unlift"], options={"sdg-vectorize": {"dims": ("t",)}})
    compiled.save(tmp_path / "first")
    loaded = tp.load(tmp_path / "first")
    loaded.save(str(tmp_path / "second"))
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()
    assert tp.load(tmp_path / "second").ir("tile") == compiled.ir("tile")


def test_host_objects_of_a_loaded_program_are_given(tmp_path):
    tp.compile(counting()).save(tmp_path / "counting")
    loaded = tp.load(tmp_path / "counting")
    assert loaded(x=np.array([1, 2]), hosts={loaded.signature.hosts[0]: Counter})["total"].tolist() == [2, 6]


def test_files_that_cannot_be_loaded(tmp_path, monkeypatch):
    path = tmp_path / "running"
    with pytest.raises(CompileError, match="cannot read"):
        tp.load(path)
    tp.compile(running()).save(path)
    whole = path.read_bytes()
    assert whole.startswith(b"tempo_ir program ")
    path.write_bytes(whole.replace(b"tempo_ir program ", b"tempo_ir program 0", 1))
    with pytest.raises(CompileError, match="in the form of another version of tempo_ir: save it again"):
        tp.load(path)
    path.write_bytes(whole[:-1])
    with pytest.raises(CompileError, match="no saved program, or not all of one: save it again"):
        tp.load(path)
    packed = Packed.of_bytes(whole)
    path.write_bytes(Packed({**packed.header, "made_by": "0.0.1"}, packed.objects).to_bytes())
    with pytest.raises(CompileError, match=r"saved by tempo_ir 0\.0\.1, this is .*: save it again"):
        tp.load(path)
    path.write_bytes(Packed({**packed.header, "system": "aarch64-apple-darwin"}, packed.objects).to_bytes())
    with pytest.raises(CompileError, match=r"was saved for aarch64-apple-darwin, this is .*: compile the program here"):
        tp.load(path)
    other = {"cpu": "mill1", "features": "+belt,+spiller,-avx", "lanes": 16, "registers": 32}
    path.write_bytes(Packed({**packed.header, "target": other}, packed.objects).to_bytes())
    with pytest.raises(CompileError, match=r"for a processor mill1; this one, .*, has no belt, spiller: compile the"):
        tp.load(path)


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    compiled = tp.compile(running())
    for path in (tmp_path, tmp_path / "absent" / "running"):
        with pytest.raises(OSError, match=re.escape(f"'{path}'") + "$"):
            compiled.save(path)
    assert not list(tmp_path.parent.glob("*.part")) + list(tmp_path.iterdir())


def test_what_has_no_code_is_not_saved(tmp_path):
    with pytest.raises(CallError, match="'reference' has no machine code to save: compile for cpu or triton"):
        tp.compile(running(), "reference").save(tmp_path / "running")


def test_packed_bytes_are_whole_or_damaged():
    packed = Packed({"a": [1, "b"]}, (b"one", b"", b"three"))
    data = packed.to_bytes()
    again = Packed.of_bytes(data)
    assert again.objects == packed.objects
    assert again.header["a"] == [1, "b"]
    for part in (b"", data[:10], data[:-1], data + b"x", b"x" + data):
        with pytest.raises(Damaged):
            Packed.of_bytes(part)


def test_reading_uses_an_entry(tmp_path):
    cache = Cache(tmp_path, 1 << 20)
    assert cache.read("key") is None
    cache.write("key", Packed({}, (b"code",)))
    os.utime(cache.path("key"), (1000, 1000))
    found = cache.read("key")
    assert found is not None
    assert found.objects == (b"code",)
    assert cache.path("key").stat().st_mtime > 1000


def test_more_than_the_machine_has_is_said_in_short():
    features = ",".join(f"+f{number}" for number in range(9))
    target = {"cpu": "c", "features": features, "lanes": 4, "registers": 8}
    packed = Packed({"system": engine.process_triple(), "target": target}, ())
    with pytest.raises(CompileError, match="has no f0, f1, f2, f3 and 5 more"):
        native.check_runs_here(packed, "it was saved")


def test_folders_of_source_are_kept_and_go_when_they_are_too_many(tmp_path):
    text = "x" * 1000
    kept = Cache(tmp_path, 2500)
    folders = [kept.folder(name, {"a.py": text, "b/c.py": ""}) or tmp_path for name in ("first", "second", "third")]
    assert [folder.exists() for folder in folders] == [False, True, True]
    (folders[1] / "a.py").write_text("part")
    assert kept.folder("second", {"a.py": text}) == folders[1]
    assert (folders[1] / "a.py").read_text() == text
    blocked = tmp_path / "no folder"
    blocked.write_text("")
    assert Cache(blocked, 2500).folder("first", {"a.py": text}) is None


def test_the_folder_may_be_named_from_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(DIRECTORY, "~/compiled")
    tp.compile(running())
    assert list((tmp_path / "compiled").glob("*.tempo"))
