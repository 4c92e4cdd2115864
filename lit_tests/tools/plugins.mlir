// Plug-ins by file: dialects, passes and targets are added; a broken one is an error, a name that is taken a warning.
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py --list-passes | filecheck %s --check-prefix=PASSES
// RUN: tempo-opt --load-pass-plugin %S/Inputs/plugin.py --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -t count | filecheck %s --check-prefix=TARGET
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/broken_plugin.py -p dce 2>&1 | filecheck %s --check-prefix=BROKEN
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/absent.py 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not tempo-opt %s --load-pass-plugin=%s 2>&1 | filecheck %s --check-prefix=NOT-PYTHON
// RUN: tempo-opt %s --load-pass-plugin=%S/Inputs/clashing_plugin.py -p cse,test-fresh 2>&1 | filecheck %s --check-prefix=CLASH
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p 'test-report{limit=a}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not tempo-opt %s --load-pass-plugin=%S/Inputs/plugin.py -p 'test-report{size=1}' 2>&1 | filecheck %s --check-prefix=UNKNOWN-OPTION

// PASSES: {{^}}cse
// PASSES: {{^}}test-fail Refuse the first `test.op`.
// PASSES: {{^}}test-report Remark on every `test.op`, and count them.
// PASSES-NEXT: {{^}} label: str = seen
// PASSES-NEXT: {{^}} limit: int | None = None

// DIALECTS: Available Dialects: arith, builtin, cf, extra, func, loop, math, scf, sdg, test, tile

// TARGET: 2 ops

// BROKEN: broken_plugin.py:3:1: error: plug-in '{{.*}}broken_plugin.py' is not loaded: ModuleNotFoundError: No module named 'no_such_module_anywhere'
// BROKEN-NEXT: {{^}}import no_such_module_anywhere
// BROKEN-NEXT: {{^}}^
// BROKEN-NOT: func.func private @f

// ABSENT: error: plug-in '{{.*}}absent.py' is not loaded: FileNotFoundError
// ABSENT-NOT: func.func private @f

// NOT-PYTHON: error: plug-in '{{.*}}plugins.mlir' is not loaded: ImportError: it is not a Python file
// NOT-PYTHON-NOT: func.func private @f

// CLASH: warning: plug-in '{{.*}}clashing_plugin.py': pass 'cse' exists already; not loaded
// CLASH: func.func private @f

// OPTION: <pass-pipeline>:1:1: error: option 'limit' of pass 'test-report' takes int | None, not a
// UNKNOWN-OPTION: <pass-pipeline>:1:1: error: pass 'test-report' has no option 'size'; its options: label: str = seen, limit: int | None = None

func.func private @f() -> ()
