"""Pass pipelines in MLIR's spelling: `sdg-cse,sdg-tile{size=64}`, plain or inside `builtin.module(...)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa

from tempo_ir.passes.pipeline import DEFAULT_PIPELINE
from tempo_ir.tools.diagnostics import Place, UserError

PIPELINE_NAME = "<pass-pipeline>"
TARGET_NAME = "<target>"
NAMED_PIPELINES = MappingProxyType({"sdg-default": DEFAULT_PIPELINE})
"""Names that stand for several passes."""
Configurable = TypeVar("Configurable", bound=ArgSpecConvertible)
_ANCHORED = re.compile(r"\s*([\w.$-]+)\s*\((.*)\)\s*", re.DOTALL)
_ANCHOR = re.compile(r"([\w.$-]+)\s*\(")
_NAME = re.compile(r"(?:^|,)([A-Za-z0-9_-]+)(?=,|\{|\[|$)")


def parse_passes(text: str, available: Mapping[str, Callable[[], type[ModulePass]]]) -> tuple[ModulePass, ...]:
    """The passes that `text` names, with their options. Raises UserError for anything it cannot make sense of."""
    pipeline = plain_pipeline(text)
    passes: list[ModulePass] = []
    for spec in _parse_specs(pipeline, PIPELINE_NAME):
        place = Place(PIPELINE_NAME, 1, _column(pipeline, spec.name))
        if spec.name in NAMED_PIPELINES:
            passes += _named_pipeline(spec, available, place)
            continue
        if spec.name not in available:
            close = get_close_matches(spec.name, available, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise UserError(f"unknown pass '{spec.name}'; {hint}`tempo-opt --list-passes` lists them", place)
        passes.append(_configured("pass", available[spec.name](), spec, place))
    return tuple(passes)


def _named_pipeline(
    spec: ArgSpec, available: Mapping[str, Callable[[], type[ModulePass]]], place: Place
) -> list[ModulePass]:
    if spec.parameters:
        raise UserError(f"'{spec.name}' stands for several passes and has no options: give them one by one", place)
    return [available[name]()() for name in NAMED_PIPELINES[spec.name]]


def check_target(text: str, available: Mapping[str, Callable[..., Any]]) -> None:
    """Raise UserError where `-t TEXT` names no target with options of its own: `triton{machine=sm_90}`."""
    place = Place(TARGET_NAME, 1, 1)
    specs = _parse_specs(text, TARGET_NAME)
    if len(specs) != 1:
        raise UserError("one target is needed", place)
    (spec,) = specs
    if spec.name not in available:
        raise UserError(f"unknown target '{spec.name}'; use one of {', '.join(available)}", place)
    if not signature(available[spec.name]).parameters:  # else a function that prints, an older form without options
        _configured("target", available[spec.name](), spec, place)


def _parse_specs(text: str, source: str) -> tuple[ArgSpec, ...]:
    try:
        return tuple(parse_pipeline(text))
    except ArgSpecParseError as error:
        # its first line says "Error parsing ...", then come place, text, caret and message
        where = re.search(r"pass-pipeline:(\d+):(\d+)", str(error))
        place = Place(source, 1, int(where[2]) if where else 0)
        raise UserError(str(error).rstrip().splitlines()[-1].strip(), place) from None


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


def _configured(kind: str, made: type[Configurable], spec: ArgSpec, place: Place) -> Configurable:
    """An instance of a pass or target with the options of `spec`, each checked, so that its message names it."""
    types: dict[str, Any] = get_type_hints(made)
    parameters: dict[str, ParameterListType] = {}
    for name, values in spec.normalize_parameter_names().parameters.items():
        shown = name.replace("_", "-")
        if name not in {option.name for option in fields(made)}:
            raise UserError(f"{kind} '{spec.name}' has no option '{shown}'; {_options_text(made)}", place)
        parameters[name] = _coerced(values, types[name])
        if not _fits(parameters[name], types[name]):
            given = ",".join(str(value) for value in values) or "nothing"
            wanted = _type_text(types[name])
            raise UserError(f"option '{shown}' of {kind} '{spec.name}' takes {wanted}, not {given}", place)
    for name in sorted(made.required_fields() - parameters.keys()):
        shown = name.replace("_", "-")
        raise UserError(f"{kind} '{spec.name}' needs the option '{shown}'; {_options_text(made)}", place)
    try:
        return made.from_spec(ArgSpec(spec.name, parameters))
    except ValueError as error:  # a value that it refuses itself
        raise UserError(f"{kind} '{spec.name}': {error}; {_options_text(made)}", place) from None


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


def _options_text(made: type[ArgSpecConvertible]) -> str:
    options = describe_options(made)
    return "its options: " + ", ".join(options) if options else "it has no options"


def describe_options(made: type[ArgSpecConvertible]) -> list[str]:
    """The options of a pass or target as they are written: `size: int = 64`, or `size: int` where it must be given."""
    types: dict[str, Any] = get_type_hints(made)
    return [
        f"{option.name.replace('_', '-')}: {_type_text(types[option.name])}{_default_text(option)}"
        for option in fields(made)
    ]


def _default_text(option: Field[Any]) -> str:
    if option.default_factory is not MISSING:
        return f" = {option.default_factory()}"
    if option.default is MISSING:
        return ""
    return f" = {str(option.default).lower() if isinstance(option.default, bool) else option.default}"


def _type_text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
