"""tempo-reduce: minimal results for programs that show a fault, progress, interrupts, messages."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tempo_ir.tools import tempo_opt
from tempo_ir.tools.tempo_reduce import CommandTest, main

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "lit_tests" / "tools" / "reduce.mlir"
PLUGIN = ROOT / "lit_tests" / "tools" / "Inputs" / "plugin.py"


def miscompiled(self: CommandTest, module: object) -> bool:
    """Whether the wrong pass of the plug-in changes what the program computes, as a command would ask tempo-opt."""
    self.path.write_text(str(module))
    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        tempo_opt.main(
            [str(self.path), f"--load-pass-plugin={PLUGIN}", "--check-each", "-p", "sdg-schedule,test-stop-early"]
        )
    return "changed what" in errors.getvalue() or "broke @" in errors.getvalue()


def test_a_miscompiled_program_becomes_a_few_ops(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(CommandTest, "__call__", miscompiled)
    assert main([str(PROGRAM), "--test", "asked in this process", "-o", str(tmp_path / "small.mlir")]) == 0
    text = (tmp_path / "small.mlir").read_text()
    assert text.startswith("builtin.module {\n  sdg.program @scan dims(t: 2) {\n"), text
    assert text.count("sdg.") == 3, text  # the program, a value over t, and its output
    progress = capsys.readouterr().err.splitlines()
    assert progress[-1].startswith("13 ops, then 2; ")
    sizes = [int(line.removeprefix("13 ops, now ")) for line in progress[:-1]]
    assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize("to_file", [False, True])
def test_an_interrupt_leaves_the_smallest_so_far(tmp_path, capsys, monkeypatch, to_file):
    asked: list[int] = []

    def interrupted(self: CommandTest, module: object) -> bool:
        asked.append(1)
        if len(asked) == 6:
            raise KeyboardInterrupt
        return "sdg.exp" in str(module)

    monkeypatch.setattr(CommandTest, "__call__", interrupted)
    file = tmp_path / "small.mlir"
    assert main([str(PROGRAM), "--test", "true", *(["-o", str(file)] if to_file else [])]) == 130
    out, err = capsys.readouterr()
    text = file.read_text() if to_file else out
    assert text.startswith("builtin.module {")
    assert "sdg.exp" in text
    assert "interrupted; the smallest program so far:" in err
    assert "5 programs tested" in err


def test_control_c_on_the_terminal(tmp_path):
    command = [sys.executable, "-m", "tempo_ir.tools.tempo_reduce", str(PROGRAM)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
    process = subprocess.Popen(
        [*command, "--test", "sh -c 'sleep 0.3; grep -q sdg.exp $0'"], stdout=-1, stderr=-1, text=True, cwd=ROOT
    )
    signal.signal(signal.SIGINT, before)
    assert process.stderr.readline().startswith("13 ops, now ")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "sdg.exp" in out
    assert "Traceback" not in err


ERRORS = {
    "quotes": (["--test", "grep 'x"], "error: --test grep 'x: No closing quotation"),
    "nothing": (["--test", ""], "error: --test '': no command"),
    "not": (["--test", "not"], "error: --test 'not': no command"),
    "output": (["--test", "true", "-o", "/no/such/folder/x"], "error: /no/such/folder/x: No such file or directory"),
    "program": (["--test", str(PROGRAM)], "Permission denied"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_mistakes_are_messages(case, capsys):
    arguments, message = ERRORS[case]
    assert main([str(PROGRAM), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_python_file_is_no_text(capsys):
    assert main(["examples/rnn.py", "--test", "true"]) == 1
    assert "tempo-reduce reads IR text: `tempo-opt examples/rnn.py -o FILE.mlir`" in capsys.readouterr().err


def test_a_test_that_hangs_says_no(capsys):
    assert main([str(PROGRAM), "--test", "sleep 20", "--timeout", "0.2"]) == 1
    assert "the test says no to the program as it is" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--timeout", "0"], ["--tries", "0"], ["--tries", "x"]])
def test_limits_are_positive_numbers(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([str(PROGRAM), "--test", "true", *arguments])
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err
