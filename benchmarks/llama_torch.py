"""Greedy Llama decoding in torch eager, as its users would write it: prefill in one pass, then one token a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F


class TorchLlama:
    """Weights in Hugging Face's names; q, k, v and gate, up are packed, the cache is preallocated."""

    def __init__(self, weights: Mapping[str, np.ndarray], config: Mapping[str, Any], window: int | None = None):
        self.window = window
        w = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in weights.items()}
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.width = config.get("head_dim") or config["hidden_size"] // self.heads
        self.epsilon = config["rms_norm_eps"]
        self.theta = rope_theta(config)
        self.table = w["model.embed_tokens.weight"]
        self.head = w.get("lm_head.weight", self.table)
        self.final_norm = w["model.norm.weight"]
        self.layers: list[dict[str, torch.Tensor]] = []
        for n in range(config["num_hidden_layers"]):
            p = f"model.layers.{n}."
            attention, mlp = p + "self_attn.", p + "mlp."
            self.layers.append(
                {
                    "qkv": torch.cat([w[f"{attention}{x}_proj.weight"] for x in "qkv"]),
                    "o": w[attention + "o_proj.weight"],
                    "gate_up": torch.cat([w[mlp + "gate_proj.weight"], w[mlp + "up_proj.weight"]]),
                    "down": w[mlp + "down_proj.weight"],
                    "norm_in": w[p + "input_layernorm.weight"],
                    "norm_post": w[p + "post_attention_layernorm.weight"],
                }
            )

    @torch.inference_mode()
    def generate(self, prompt: np.ndarray, length: int) -> np.ndarray:
        """prompt: (batch, P) of i64 -> (batch, length), the prompt included."""
        batch, prompt_length = prompt.shape
        self.rotations(length)
        keys, values = self.caches(batch, length)
        tokens = torch.empty(batch, length, dtype=torch.int64)
        tokens[:, :prompt_length] = torch.from_numpy(prompt)
        start = 0
        for stop in range(prompt_length, length):
            hidden = self.forward(tokens[:, start:stop], start, keys, values)
            tokens[:, stop] = F.linear(hidden[:, -1], self.head).argmax(-1)
            start = stop
        return tokens.numpy()

    @torch.inference_mode()
    def scores(self, tokens: np.ndarray) -> np.ndarray:
        """The logits (batch, T, vocabulary) after every token of (batch, T), all in one pass."""
        batch, length = tokens.shape
        self.rotations(length)
        hidden = self.forward(torch.from_numpy(tokens.astype(np.int64)), 0, *self.caches(batch, length))
        return F.linear(hidden, self.head).numpy()

    def rotations(self, length: int) -> None:
        """The cosines and sines of all positions: (T, width)."""
        frequency = self.theta ** (-torch.arange(0, self.width, 2, dtype=torch.float32) / self.width)
        angle = torch.arange(length, dtype=torch.float32)[:, None] * frequency[None, :]
        self.cos, self.sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)

    def caches(self, batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        shape = (len(self.layers), batch, self.kv_heads, length, self.width)
        return torch.zeros(shape), torch.zeros(shape)

    def forward(self, tokens: torch.Tensor, start: int, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The last hidden states (batch, n, hidden), normed, of `tokens` (batch, n) at positions start .. start + n."""
        batch, n = tokens.shape
        stop = start + n
        first = 0 if self.window is None or n > 1 else max(0, stop - self.window)
        mask = self.mask(n) if n > 1 else None
        cos, sin = self.cos[start:stop], self.sin[start:stop]
        x = F.embedding(tokens, self.table)
        split = [self.heads * self.width, self.kv_heads * self.width, self.kv_heads * self.width]
        for index, layer in enumerate(self.layers):
            h = F.rms_norm(x, x.shape[-1:], layer["norm_in"], self.epsilon)
            q, k, v = (
                part.view(batch, n, -1, self.width).transpose(1, 2)
                for part in F.linear(h, layer["qkv"]).split(split, dim=-1)
            )
            keys[index, :, :, start:stop] = rotate(k, cos, sin)
            values[index, :, :, start:stop] = v
            attended = F.scaled_dot_product_attention(
                rotate(q, cos, sin),
                keys[index, :, :, first:stop],
                values[index, :, :, first:stop],
                attn_mask=mask,
                enable_gqa=True,
            )
            x = x + F.linear(attended.transpose(1, 2).reshape(batch, n, -1), layer["o"])
            gate, up = F.linear(F.rms_norm(x, x.shape[-1:], layer["norm_post"], self.epsilon), layer["gate_up"]).chunk(
                2, dim=-1
            )
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        return F.rms_norm(x, x.shape[-1:], self.final_norm, self.epsilon)

    def mask(self, n: int) -> torch.Tensor:
        """Whether position i of the first n sees position j: (n, n)."""
        distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
        return (distance >= 0) & (distance < (self.window or n))


class CompiledLlama(TorchLlama):
    """The step of one token under torch.compile: caches of a fixed length, masked, updated in place."""

    @torch.inference_mode()
    def generate(self, prompt: np.ndarray, length: int, steps: int | None = None) -> np.ndarray:
        """prompt: (batch, P) of i64 -> (batch, length), the prompt included; no more than `steps` steps are taken."""
        batch, prompt_length = prompt.shape
        self.rotations(length)
        keys, values = self.caches(batch, length)
        tokens = torch.empty(batch, length, dtype=torch.int64)
        tokens[:, :prompt_length] = torch.from_numpy(prompt)
        places = torch.arange(length)
        for t in range(length - 1 if steps is None else steps):
            following = self.step(tokens[:, t], places[t : t + 1], keys, values)
            if t + 1 >= prompt_length:
                tokens[:, t + 1] = following
        return tokens.numpy()

    @cached_property
    def step(self) -> Callable[..., torch.Tensor]:
        """The compiled step: (batch,) of tokens, their position (1,) and the caches -> the tokens after them."""
        return torch.compile(self.following, dynamic=False, fullgraph=True)

    def following(self, token: torch.Tensor, t: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        batch, length = len(token), keys.shape[3]
        cos, sin = self.cos[t], self.sin[t]
        places = torch.arange(length)
        live = (places <= t) & (places > t - (self.window or length))
        x = F.embedding(token, self.table)[:, None]
        split = [self.heads * self.width, self.kv_heads * self.width, self.kv_heads * self.width]
        for index, layer in enumerate(self.layers):
            h = F.rms_norm(x, x.shape[-1:], layer["norm_in"], self.epsilon)
            q, k, v = (
                part.view(batch, 1, -1, self.width).transpose(1, 2)
                for part in F.linear(h, layer["qkv"]).split(split, dim=-1)
            )
            keys[index].index_copy_(2, t, rotate(k, cos, sin))
            values[index].index_copy_(2, t, v)
            attended = F.scaled_dot_product_attention(
                rotate(q, cos, sin), keys[index], values[index], attn_mask=live[None, None, None], enable_gqa=True
            )
            x = x + F.linear(attended.transpose(1, 2).reshape(batch, 1, -1), layer["o"])
            h = F.rms_norm(x, x.shape[-1:], layer["norm_post"], self.epsilon)
            gate, up = F.linear(h, layer["gate_up"]).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        hidden = F.rms_norm(x[:, 0], x.shape[-1:], self.final_norm, self.epsilon)
        return F.linear(hidden, self.head).argmax(-1)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rope_theta(config: Mapping[str, Any]) -> float:
    """transformers 5 keeps it in `rope_parameters`, earlier releases at the top level."""
    parameters = config.get("rope_parameters") or {}
    return float(config.get("rope_theta") or parameters.get("rope_theta") or 10000.0)
