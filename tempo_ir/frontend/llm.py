"""Decoder-only language models in Llama's form, with the weights of a Hugging Face checkpoint.

    net = llm.Llama.from_pretrained("models/tiny")
    x = net.embed(token)
    for layer in net.layers:
        x = x + attend(layer, layer.norm_in(x), t)
        x = x + layer.mlp(layer.norm_post(x))
    logits = net.head(net.norm(x))

The model holds weights and their shapes; attention is the program's own, since how far it looks back is the
program's choice. Parameters keep Hugging Face's names (`model.layers.0.self_attn.q_proj.weight`), and are read when
first values are asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tempo_ir.frontend import elementwise as el
from tempo_ir.frontend import shapes
from tempo_ir.frontend.checkpoint import Checkpoint, CheckpointError, write_safetensors
from tempo_ir.frontend.description import Array, Initialiser
from tempo_ir.frontend.dims import Dim
from tempo_ir.frontend.dtypes import DType, bf16, f16, f32, f64, i8
from tempo_ir.frontend.errors import ProgramError
from tempo_ir.frontend.nn import Module, RMSNorm, linear
from tempo_ir.frontend.recording import current
from tempo_ir.frontend.state import parameter
from tempo_ir.frontend.tensor import Tensor, Value


@dataclass(frozen=True)
class Config:
    """The numbers of a Llama model, from its `config.json`."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    feed_forward: int
    vocabulary: int
    eps: float = 1e-6
    tied: bool = False
    rope: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> Config:
        """Read Hugging Face's names. Raises CheckpointError for a missing entry and for what this module has not."""
        try:
            heads: int = entries["num_attention_heads"]
            config = cls(
                layers=entries["num_hidden_layers"],
                hidden=entries["hidden_size"],
                heads=heads,
                kv_heads=entries.get("num_key_value_heads") or heads,
                head_width=entries.get("head_dim") or entries["hidden_size"] // heads,
                feed_forward=entries["intermediate_size"],
                vocabulary=entries["vocab_size"],
                eps=entries.get("rms_norm_eps", 1e-6),
                tied=bool(entries.get("tie_word_embeddings", False)),
                rope=rope_parameters(entries),
            )
        except KeyError as error:
            raise CheckpointError(f"config.json has no entry {error}, which a Llama model needs") from None
        if (activation := entries.get("hidden_act", "silu")) != "silu":
            raise CheckpointError(f"config.json asks for the activation '{activation}': Llama models use silu")
        return config


def rope_parameters(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The rotary parameters, where either generation of transformers writes them."""
    parameters = dict(entries.get("rope_parameters") or entries.get("rope_scaling") or {})
    parameters.setdefault("rope_theta", entries.get("rope_theta", 10000.0))
    parameters["rope_type"] = parameters.get("rope_type") or parameters.get("type") or "default"
    if parameters["rope_type"] not in ("default", "linear", "llama3"):
        raise CheckpointError(f"rotary scaling '{parameters['rope_type']}' is none of default, linear, llama3")
    return parameters


def inverse_frequencies(width: int, parameters: Mapping[str, Any]) -> Array:
    """Radians per position for each pair of elements, f32 of `width // 2` (Su et al. 2021; Llama 3.1's scaling)."""
    exponent = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    frequencies = (1.0 / np.float32(parameters.get("rope_theta", 10000.0)) ** exponent).astype(np.float32)
    kind = parameters.get("rope_type", "default")
    if kind == "linear":
        return (frequencies / np.float32(parameters["factor"])).astype(np.float32)
    if kind != "llama3":
        return frequencies
    factor, low, high = (parameters[key] for key in ("factor", "low_freq_factor", "high_freq_factor"))
    length = parameters["original_max_position_embeddings"]
    wavelengths = 2 * math.pi / frequencies
    smooth = np.clip((length / wavelengths - low) / (high - low), 0.0, 1.0)
    return ((1 - smooth) * frequencies / factor + smooth * frequencies).astype(np.float32)


def rope(x: Tensor, position: Value, frequencies: Value | None = None) -> Tensor:
    """Rotate pairs of elements of the last axis by `position` times their frequency: (..., width) -> (..., width).

    Element k is paired with element k + width / 2, as Hugging Face's checkpoints are laid out.
    """
    width = x.shape[-1]
    if not isinstance(width, int) or width % 2:
        raise ProgramError(f"rope rotates pairs of elements, the last axis has {width}")
    if frequencies is None:
        frequencies = inverse_frequencies(width, {})
    cos, sin = rotation(position, frequencies, x.dtype)
    first, second = x[..., : width // 2], x[..., width // 2 :]
    return shapes.concat([first * cos - second * sin, second * cos + first * sin], -1)


def rotation(position: Value, frequencies: Value, dtype: DType) -> tuple[Tensor, Tensor]:
    """Cosine and sine of a position times each frequency, in its shape. Equal ones, as of layers, are recorded once."""

    def recorded() -> tuple[Tensor, Tensor]:
        angle = el.cast(position, f32) * frequencies
        return el.cast(el.cos(angle), dtype), el.cast(el.sin(angle), dtype)

    recording = current()
    at = (position.value, position.index) if isinstance(position, Tensor) else None
    at = position.expr if isinstance(position, Dim) else at
    if at is None or not isinstance(frequencies, np.ndarray):
        return recorded()
    key = ("rotation", at, frequencies.dtype.name, frequencies.shape, frequencies.tobytes(), dtype.name)
    if (*key, "cos") not in recording.constants:
        cos, sin = recorded()
        recording.constants[(*key, "cos")], recording.constants[(*key, "sin")] = cos.value, sin.value
    cos, sin = (Tensor(recording, recording.constants[(*key, name)]) for name in ("cos", "sin"))
    return cos, sin


class Matrix(Module):
    """Weights as they are stored, (outputs, inputs), and computed with as the type of what they are multiplied with:
    of a float type, or i8 with one scale per row."""

    def __init__(self, weight: Tensor, scale: Tensor | None = None):
        self.weight, self.scale = weight, scale

    def product(self, x: Tensor) -> Tensor:
        """`x @ weight.T`: (..., inputs) -> (..., outputs)."""
        y = linear(x, self.weight)
        return y if self.scale is None else y * self.scale

    def rows(self, ids: Tensor, dtype: DType) -> Tensor:
        """Rows at integer positions, in the type to compute with: (...) -> (..., inputs)."""
        rows = el.cast(shapes.take(self.weight, ids, 0), dtype)
        if self.scale is None:
            return rows
        scale = shapes.take(self.scale, ids, 0)
        return rows * shapes.reshape(scale, (*scale.shape, 1))


class Projection(Module):
    """A linear layer: (..., inputs) -> (..., outputs)."""

    def __init__(self, matrix: Matrix, bias: Tensor | None = None):
        self.matrix, self.bias = matrix, bias

    def __call__(self, x: Tensor) -> Tensor:
        """The layer's output."""
        y = self.matrix.product(x)
        return y if self.bias is None else y + self.bias


class FeedForward(Module):
    """SwiGLU: `down(silu(gate(x)) * up(x))` (Shazeer 2020)."""

    def __init__(self, gate: Projection, up: Projection, down: Projection):
        self.gate, self.up, self.down = gate, up, down

    def __call__(self, x: Tensor) -> Tensor:
        """(..., hidden) -> (..., hidden)."""
        return self.down(el.silu(self.gate(x)) * self.up(x))


class Layer(Module):
    """One layer: projections `q`, `k`, `v`, `o`, the feed-forward `mlp`, and the norms before each half.

    `kv_heads` key-value heads serve `group` query heads each, of `width` elements; `frequencies` are for `rope`.
    """

    def __init__(self, weights: Weights, prefix: str):
        config = weights.config
        self.kv_heads = config.kv_heads
        self.group = config.heads // config.kv_heads
        self.width = config.head_width
        self.frequencies = inverse_frequencies(config.head_width, config.rope)
        queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
        attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        self.q = weights.projection(f"{attention}.q_proj", config.hidden, queries)
        self.k = weights.projection(f"{attention}.k_proj", config.hidden, keys)
        self.v = weights.projection(f"{attention}.v_proj", config.hidden, keys)
        self.o = weights.projection(f"{attention}.o_proj", queries, config.hidden)
        self.mlp = FeedForward(
            weights.projection(f"{mlp}.gate_proj", config.hidden, config.feed_forward),
            weights.projection(f"{mlp}.up_proj", config.hidden, config.feed_forward),
            weights.projection(f"{mlp}.down_proj", config.feed_forward, config.hidden),
        )
        self.norm_in = weights.norm(f"{prefix}.input_layernorm")
        self.norm_post = weights.norm(f"{prefix}.post_attention_layernorm")


class Llama(Module):
    """Embedding, layers, last norm and head of a Llama model."""

    def __init__(self, weights: Weights, layers: int | None = None):
        config = weights.config
        count = config.layers if layers is None else layers
        if not 0 < count <= config.layers:
            raise ProgramError(f"the model has {config.layers} layers, {count} are asked for")
        self.config, self.dtype = config, weights.dtype
        self.table = weights.matrix("model.embed_tokens", config.vocabulary, config.hidden)
        self.layers = [Layer(weights, f"model.layers.{number}") for number in range(count)]
        self.norm = weights.norm("model.norm")
        tied = config.tied or "lm_head.weight" not in weights.checkpoint.files
        self.head = Projection(self.table) if tied else weights.projection("lm_head", config.hidden, config.vocabulary)

    def embed(self, ids: Tensor) -> Tensor:
        """The rows of the embedding table: (...) -> (..., hidden)."""
        return self.table.rows(ids, self.dtype)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | PathLike[str],
        *,
        layers: int | None = None,
        dtype: DType = f32,
        weights: DType | None = None,
    ) -> Llama:
        """The model of a checkpoint in Hugging Face layout; `layers` takes only the first ones.

        It computes in `dtype`. Matrices are stored in `weights`, by default in `dtype` too: bf16 or f16 halve the bytes
        that decoding reads; i8, with one scale per row (`NAME.scale`), rounds each to 1/127 of the greatest of its row.
        Norms and biases stay in `dtype`.

        Raises CheckpointError where files or tensors are missing or are no Llama model, ProgramError for a type that
        holds no weights.
        """
        checkpoint = Checkpoint.open(directory)
        stored = dtype if weights is None else weights
        if stored not in (i8, bf16, f16, f32, f64):
            raise ProgramError(f"weights are stored in a float type or i8, not in {stored}")
        return cls(Weights(checkpoint, Config.of(checkpoint.config), dtype, stored), layers)


@dataclass(frozen=True)
class Weights:
    """Makes parameters of a checkpoint's tensors, each with the name and the shape that it has there."""

    checkpoint: Checkpoint
    config: Config
    dtype: DType
    stored: DType

    def matrix(self, name: str, outputs: int, inputs: int) -> Matrix:
        """Weights in the type in which they are stored."""
        path = f"{name}.weight"
        if self.stored != i8:
            return Matrix(self.tensor(path, outputs, inputs, dtype=self.stored))
        rows, scale = (self._quantised(path, part) for part in range(2))
        weight = self.tensor(path, outputs, inputs, dtype=i8, init=rows)
        return Matrix(weight, parameter(f"{name}.scale", f32[outputs], scale))

    def _quantised(self, path: str, part: int) -> Initialiser:
        return lambda generator, shape: quantised(self.checkpoint.read(path))[part]

    def tensor(self, name: str, *shape: int, dtype: DType | None = None, init: Initialiser | None = None) -> Tensor:
        """A parameter whose first value is the checkpoint's tensor, or made by `init`."""
        stored = self.checkpoint.shape(name)
        if stored != shape:
            raise CheckpointError(f"the tensor '{name}' has the shape {stored}, config.json implies {shape}")
        return parameter(name, (dtype or self.dtype)[shape], init or self.checkpoint.initialiser(name))

    def projection(self, name: str, inputs: int, outputs: int) -> Projection:
        """A linear layer, with a bias where the checkpoint has one."""
        biased = f"{name}.bias" in self.checkpoint.files
        return Projection(self.matrix(name, outputs, inputs), self.tensor(f"{name}.bias", outputs) if biased else None)

    def norm(self, name: str) -> RMSNorm:
        """A norm over the hidden axis."""
        init = self.checkpoint.initialiser(f"{name}.weight")
        return RMSNorm(self.config.hidden, eps=self.config.eps, name=name, dtype=self.dtype, init=init)


def quantised(weight: Array) -> tuple[Array, Array]:
    """Whole numbers from -127 to 127, and the scale of each row: (rows, columns) -> i8 of that shape, f32 (rows,)."""
    wide = weight.astype(np.float32)
    scale = np.abs(wide).max(axis=1, initial=0.0) / np.float32(127)
    scale[scale == 0] = 1
    return np.rint(wide / scale[:, None]).astype(np.int8), scale


def write_random_llama(
    directory: str | PathLike[str],
    *,
    layers: int = 4,
    hidden: int = 256,
    heads: int = 8,
    kv_heads: int = 4,
    vocabulary: int = 1000,
    feed_forward: int = 704,
    seed: int = 0,
) -> Path:
    """Write a checkpoint of normal weights (std 0.02, norms 1) in Hugging Face layout; gives its directory."""
    width = hidden // heads
    entries = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": feed_forward,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": width,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }
    shape_of: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for number in range(layers):
        prefix = f"model.layers.{number}"
        shape_of |= {
            f"{prefix}.self_attn.q_proj.weight": (heads * width, hidden),
            f"{prefix}.self_attn.k_proj.weight": (kv_heads * width, hidden),
            f"{prefix}.self_attn.v_proj.weight": (kv_heads * width, hidden),
            f"{prefix}.self_attn.o_proj.weight": (hidden, heads * width),
            f"{prefix}.mlp.gate_proj.weight": (feed_forward, hidden),
            f"{prefix}.mlp.up_proj.weight": (feed_forward, hidden),
            f"{prefix}.mlp.down_proj.weight": (hidden, feed_forward),
            f"{prefix}.input_layernorm.weight": (hidden,),
            f"{prefix}.post_attention_layernorm.weight": (hidden,),
        }
    shape_of |= {"model.norm.weight": (hidden,), "lm_head.weight": (vocabulary, hidden)}
    generator = np.random.default_rng(seed)
    tensors = {
        name: (np.ones(shape) if len(shape) == 1 else generator.normal(0.0, 0.02, shape)).astype(np.float32)
        for name, shape in shape_of.items()
    }
    path = Path(directory)
    write_safetensors(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps(entries, indent=2) + "\n")
    return path


__all__ = [
    "Config",
    "FeedForward",
    "Layer",
    "Llama",
    "Matrix",
    "Projection",
    "inverse_frequencies",
    "quantised",
    "rope",
    "write_random_llama",
]
