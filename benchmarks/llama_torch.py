"""Greedy Llama decoding in torch eager, as its users would write it: prefill in one pass, then one token a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F


class TorchLlama:
    """Weights in Hugging Face's names; q, k, v and gate, up are packed, the cache is preallocated."""

    def __init__(self, weights: Mapping[str, np.ndarray], config: Mapping[str, Any]):
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
        frequency = self.theta ** (-torch.arange(0, self.width, 2, dtype=torch.float32) / self.width)
        angle = torch.arange(length, dtype=torch.float32)[:, None] * frequency[None, :]
        self.cos, self.sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        shape = (len(self.layers), batch, self.kv_heads, length, self.width)
        keys, values = torch.empty(shape), torch.empty(shape)
        tokens = torch.empty(batch, length, dtype=torch.int64)
        tokens[:, :prompt_length] = torch.from_numpy(prompt)
        start = 0
        for stop in range(prompt_length, length):
            logits = self.forward(tokens[:, start:stop], start, keys, values)
            tokens[:, stop] = logits.argmax(-1)
            start = stop
        return tokens.numpy()

    def forward(self, tokens: torch.Tensor, start: int, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Logits (batch, vocabulary) of the last of `tokens` (batch, n), at positions start .. start + n."""
        batch, n = tokens.shape
        stop = start + n
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
                keys[index, :, :, :stop],
                values[index, :, :, :stop],
                is_causal=n > 1,
                enable_gqa=True,
            )
            x = x + F.linear(attended.transpose(1, 2).reshape(batch, n, -1), layer["o"])
            gate, up = F.linear(F.rms_norm(x, x.shape[-1:], layer["norm_post"], self.epsilon), layer["gate_up"]).chunk(
                2, dim=-1
            )
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        return F.linear(F.rms_norm(x[:, -1], x.shape[-1:], self.final_norm, self.epsilon), self.head)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rope_theta(config: Mapping[str, Any]) -> float:
    """transformers 5 keeps it in `rope_parameters`, earlier releases at the top level."""
    parameters = config.get("rope_parameters") or {}
    return float(config.get("rope_theta") or parameters.get("rope_theta") or 10000.0)
