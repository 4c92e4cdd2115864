"""Greedy Llama decoding in jax, as its users would write it: one jit, a static padded cache, a masked `fori_loop`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.llama_torch import rope_theta


class JaxLlama:
    """Weights in Hugging Face's names, stacked per layer so that `scan` over layers compiles one of them."""

    def __init__(self, weights: Mapping[str, np.ndarray], config: Mapping[str, Any]):
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.width = config.get("head_dim") or config["hidden_size"] // self.heads
        self.epsilon, self.theta = config["rms_norm_eps"], rope_theta(config)
        layers = range(config["num_hidden_layers"])

        def stack(*names: str) -> jax.Array:
            return jnp.stack(
                [
                    jnp.concatenate([jnp.asarray(weights[f"model.layers.{n}.{name}.weight"]) for name in names])
                    for n in layers
                ]
            )

        self.parameters = {
            "table": jnp.asarray(weights["model.embed_tokens.weight"]),
            "head": jnp.asarray(weights.get("lm_head.weight", weights["model.embed_tokens.weight"])),
            "final_norm": jnp.asarray(weights["model.norm.weight"]),
            "layers": {
                "qkv": stack("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                "o": stack("self_attn.o_proj"),
                "gate_up": stack("mlp.gate_proj", "mlp.up_proj"),
                "down": stack("mlp.down_proj"),
                "norm_in": stack("input_layernorm"),
                "norm_post": stack("post_attention_layernorm"),
            },
        }

    def compile(self, batch: int, prompt_length: int, length: int) -> Any:
        """An executable `(parameters, prompt) -> tokens` for these sizes: other sizes need another compile."""
        prompt = jax.ShapeDtypeStruct((batch, prompt_length), jnp.int32)
        return jax.jit(partial(self.generate, length=length)).lower(self.parameters, prompt).compile()

    def generate(self, parameters: Any, prompt: jax.Array, length: int) -> jax.Array:
        batch, prompt_length = prompt.shape
        layers = parameters["layers"]["qkv"].shape[0]
        cache = jnp.zeros((2, layers, batch, self.kv_heads, length, self.width), jnp.float32)
        tokens = jnp.zeros((batch, length), jnp.int32).at[:, :prompt_length].set(prompt)

        def step(t: Any, carry: Any) -> Any:
            tokens, cache = carry
            x, cache = self.trunk(parameters, tokens[:, t], t, cache)

            def choose(_: Any) -> jax.Array:
                normed = self.norm(x, parameters["final_norm"])
                return jnp.argmax(normed @ parameters["head"].T, axis=-1).astype(jnp.int32)

            following = lax.cond(t + 1 < prompt_length, lambda _: tokens[:, t + 1], choose, None)
            return tokens.at[:, t + 1].set(following), cache

        return lax.fori_loop(0, length - 1, step, (tokens, cache))[0]

    def trunk(self, parameters: Any, token: jax.Array, t: Any, cache: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The hidden state (batch, hidden) after all layers at position t, and the cache with the new rows."""
        batch, length = token.shape[0], cache.shape[-2]
        frequency = self.theta ** (-jnp.arange(0, self.width, 2, dtype=jnp.float32) / self.width)
        angle = jnp.tile(t * frequency, 2)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        live = jnp.arange(length) <= t

        def layer(x: jax.Array, inputs: Any) -> Any:
            w, keys, values = inputs
            qkv = (self.norm(x, w["norm_in"]) @ w["qkv"].T).reshape(batch, -1, self.width)
            q, k, v = jnp.split(qkv, [self.heads, self.heads + self.kv_heads], axis=1)
            keys = lax.dynamic_update_slice(keys, rotate(k, cos, sin)[:, :, None], (0, 0, t, 0))
            values = lax.dynamic_update_slice(values, v[:, :, None], (0, 0, t, 0))
            q = rotate(q, cos, sin).reshape(batch, self.kv_heads, -1, self.width) * self.width**-0.5
            score = jnp.where(live, jnp.einsum("bhgd,bhnd->bhgn", q, keys), -jnp.inf)
            attended = jnp.einsum("bhgn,bhnd->bhgd", jax.nn.softmax(score), values).reshape(batch, -1)
            x = x + attended @ w["o"].T
            gate, up = jnp.split(self.norm(x, w["norm_post"]) @ w["gate_up"].T, 2, axis=-1)
            return x + (jax.nn.silu(gate) * up) @ w["down"].T, (keys, values)

        x, (keys, values) = lax.scan(layer, parameters["table"][token], (parameters["layers"], cache[0], cache[1]))
        return x, jnp.stack([keys, values])

    def norm(self, x: jax.Array, weight: jax.Array) -> jax.Array:
        return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + self.epsilon) * weight


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    first, second = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate((-second, first), axis=-1) * sin
