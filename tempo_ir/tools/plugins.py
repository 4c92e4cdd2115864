"""Plug-ins: dialects, passes, targets and front ends from an installed package or from a file.

An installed package names an `xdsl.universe.Universe` in the entry-point group `xdsl.universe`; a file given with
`--load-pass-plugin` defines one at top level, or just passes and dialects. An installed plug-in that does not load is a
warning, since nobody asked for it; a file that does not load is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from tempo_ir.tools.diagnostics import Diagnostic, UserError, place_in_file

_GROUP = "xdsl.universe"
_BUILT_IN = frozenset({"xdsl", "tempo_ir"})
Warn = Callable[[Diagnostic], None]


def load_plugins(files: Sequence[str], warn: Warn) -> dict[str, Universe]:
    """Every plug-in by name: the installed ones that load (the others go to `warn`), then `files`.

    Raises UserError for a file that does not load.
    """
    universes: dict[str, Universe] = {}
    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name):
        if entry.name not in _BUILT_IN:
            try:
                universes[entry.name] = _loaded(entry.name, entry.load)
            except UserError as error:
                warn(Diagnostic("warning", str(error), error.place))
    for file in files:
        universes[file] = _loaded(file, lambda file=file: _universe_of_file(Path(file)))
    return universes


def _loaded(name: str, load: Callable[[], object]) -> Universe:
    """Raises UserError, at the plug-in's line, for whatever loading it raises."""
    try:
        universe = load()
    except Exception as error:  # a plug-in is someone else's code, which may raise anything
        message = f"plug-in '{name}' is not loaded: {type(error).__name__}: {error}"
        raise UserError(message, place_in_file(error, Path(name))) from error
    if not isinstance(universe, Universe):
        raise UserError(f"plug-in '{name}' is not loaded: {universe!r} is not an xdsl.universe.Universe")
    return universe


def _universe_of_file(path: Path) -> Universe:
    module = _import_file(path.absolute())
    defined = list(vars(module).values())
    universes = [value for value in defined if isinstance(value, Universe)]
    dialects = [value for value in defined if isinstance(value, Dialect)]
    passes = [value for value in defined if _is_pass_of(value, module)]
    if not universes and not dialects and not passes:
        raise ImportError("it defines no Universe, Dialect or ModulePass")
    merged = Universe(
        all_dialects={dialect.name: (lambda dialect=dialect: dialect) for dialect in dialects},
        all_passes={found.name: (lambda found=found: found) for found in passes},
    )
    for universe in universes:
        merged.all_dialects.update(universe.all_dialects)
        merged.all_passes.update(universe.all_passes)
        merged.all_targets.update(universe.all_targets)
        merged.all_frontends.update(universe.all_frontends)
    return merged


def _is_pass_of(value: object, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, ModulePass)
        and value.__module__ == module.__name__
        and hasattr(value, "name")
    )


def _import_file(path: Path) -> ModuleType:
    name = f"tempo_ir_plugin_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
