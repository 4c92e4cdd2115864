"""What the pointers of a kernel are called that several launches share: by what the names of their buffers have in
common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from xdsl.ir import SSAValue

from tempo_ir.dialects.loop import LaunchOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.names import fresh_name


def name_pointers(launches: Iterable[LaunchOp], kernels: Mapping[str, KernelOp]) -> None:
    """Name the pointers of kernels after the buffers of all their launches, so that the kernel of every layer does not
    speak of the first one's weights."""
    buffers: dict[str, list[Sequence[SSAValue]]] = {}
    for launch in launches:
        buffers.setdefault(launch.kernel.root_reference.data, []).append(launch.buffers)
    for name, all_buffers in buffers.items():
        if len(all_buffers) < 2:
            continue
        taken: set[str] = set()
        for argument, passed in zip(kernels[name].body.block.args, zip(*all_buffers, strict=True), strict=False):
            hints = [buffer.name_hint for buffer in passed]
            common = common_name([hint for hint in hints if hint is not None]) if None not in hints else None
            argument.name_hint = fresh_name(common or argument.name_hint or "b", taken)
            taken.add(argument.name_hint)


def common_name(names: Sequence[str]) -> str | None:
    """The last words that names share, or else the first ones: `layernorm_weight` of `model_layers_0_layernorm_weight`
    and `model_layers_1_layernorm_weight`. None where they share none."""
    if len(set(names)) == 1:
        return names[0]
    words = [_words(name) for name in names]
    shortest = min(map(len, words))
    last = [list(reversed(each))[:shortest] for each in words]
    shared = [group[0] for group in takewhile(_all_equal, zip(*last, strict=True))]
    while shared and not shared[-1][:1].isalpha():  # a name begins with a letter
        shared.pop()
    if shared:
        return "_".join(reversed(shared))
    first = [group[0] for group in takewhile(_all_equal, zip(*(each[:shortest] for each in words), strict=True))]
    return "_".join(first) or None


def _words(name: str) -> list[str]:
    """The words of a name, without the numbers at its end."""
    words = name.split("_")
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    return words


def _all_equal(words: Sequence[str]) -> bool:
    return len(set(words)) == 1
