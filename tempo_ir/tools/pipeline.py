"""Pass pipelines in MLIR's spelling: `sdg-cse,sdg-tile{size=64}`, plain or inside `builtin.module(...)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, get_type_hints

from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa

from tempo_ir.tools.diagnostics import Place, UserError

PIPELINE_NAME = "<pass-pipeline>"
_ANCHORED = re.compile(r"\s*([\w.$-]+)\s*\((.*)\)\s*", re.DOTALL)
_ANCHOR = re.compile(r"([\w.$-]+)\s*\(")
_NAME = re.compile(r"(?:^|,)([A-Za-z0-9_-]+)(?=,|\{|\[|$)")


def parse_passes(text: str, available: Mapping[str, Callable[[], type[ModulePass]]]) -> tuple[ModulePass, ...]:
    """The passes that `text` names, with their options. Raises UserError for anything it cannot make sense of."""
    pipeline = plain_pipeline(text)
    try:
        specs = tuple(parse_pipeline(pipeline))
    except ArgSpecParseError as error:
        # its first line says "Error parsing ...", then come place, text, caret and message
        raise UserError(str(error).rstrip().splitlines()[-1].strip(), _syntax_place(pipeline, error)) from None
    return tuple(_make_pass(spec, available, Place(PIPELINE_NAME, 1, _column(pipeline, spec.name))) for spec in specs)


def plain_pipeline(text: str) -> str:
    """The pipeline without its anchor and without space between passes. Raises UserError for another anchor."""
    while (anchored := _ANCHORED.fullmatch(text)) is not None:
        _check_anchor(anchored[1])
        text = anchored[2]
    outside_options = re.split(r"(\{[^}]*\})", text)
    outside_options[::2] = [re.sub(r"\s*,\s*", ",", part) for part in outside_options[::2]]
    plain = "".join(outside_options).strip()
    if (nested := _ANCHOR.search(plain)) is not None:
        _check_anchor(nested[1])
        raise UserError("`builtin.module(...)` must enclose the whole pipeline, not a part of it")
    return plain


def _check_anchor(name: str) -> None:
    if name != "builtin.module":
        raise UserError(
            f"a pass pipeline runs on builtin.module, not on '{name}': write 'builtin.module(...)' or the bare passes"
        )


def _column(pipeline: str, name: str) -> int:
    return next((match.start(1) + 1 for match in _NAME.finditer(pipeline) if match[1] == name), 0)


def _syntax_place(pipeline: str, error: ArgSpecParseError) -> Place:
    where = re.search(r"pass-pipeline:(\d+):(\d+)", str(error))
    return Place(PIPELINE_NAME, 1, int(where[2]) if where else 0)


def _make_pass(spec: ArgSpec, available: Mapping[str, Callable[[], type[ModulePass]]], place: Place) -> ModulePass:
    if spec.name not in available:
        close = get_close_matches(spec.name, available, n=1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise UserError(f"unknown pass '{spec.name}'; {hint}`tempo-opt --list-passes` lists them", place)
    pass_class = available[spec.name]()
    types: dict[str, Any] = get_type_hints(pass_class)
    options = {option.name for option in get_pass_option_infos(pass_class)}
    parameters: dict[str, ParameterListType] = {}
    for name, values in spec.normalize_parameter_names().parameters.items():
        shown = name.replace("_", "-")
        if name not in options:
            raise UserError(f"pass '{spec.name}' has no option '{shown}'; {_options_text(pass_class)}", place)
        parameters[name] = _coerced(values, types[name])
        if not _fits(parameters[name], types[name]):
            given = ",".join(str(value) for value in values) or "nothing"
            raise UserError(
                f"option '{shown}' of pass '{spec.name}' takes {_type_text(types[name])}, not {given}", place
            )
    for name in sorted(pass_class.required_fields() - parameters.keys()):
        shown = name.replace("_", "-")
        raise UserError(f"pass '{spec.name}' needs the option '{shown}'; {_options_text(pass_class)}", place)
    try:
        return pass_class.from_spec(ArgSpec(spec.name, parameters))
    except ValueError as error:  # a value that the pass itself refuses
        raise UserError(f"pass '{spec.name}': {error}; {_options_text(pass_class)}", place) from None


def _coerced(values: ParameterListType, annotation: Any) -> ParameterListType:
    """As MLIR reads them: a boolean option without a value is true, and an integer will do for a float."""
    if not values and annotation is bool:
        return (True,)
    if annotation is float:
        return tuple(float(value) if type(value) is int else value for value in values)
    return values


def _fits(values: ParameterListType, annotation: Any) -> bool:
    if not values:
        return isa(None, annotation)
    return (len(values) == 1 and isa(values[0], annotation)) or isa(values, annotation)


def _options_text(pass_class: type[ModulePass]) -> str:
    options = describe_options(pass_class)
    return "its options: " + ", ".join(options) if options else "it has no options"


def describe_options(pass_class: type[ModulePass]) -> list[str]:
    """The options of a pass as they are written: `size: int = 64`, an option without default first as `size: int`."""
    types: dict[str, Any] = get_type_hints(pass_class)
    return [
        f"{option.name.replace('_', '-')}: {_type_text(types[option.name])}"
        + (f" = {option.default_value}" if option.default_value is not None else "")
        for option in get_pass_option_infos(pass_class)
    ]


def _type_text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
