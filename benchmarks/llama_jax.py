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
    """Weights in Hugging Face's names; q, k, v and gate, up are packed.

    Each layer has arrays of its own for its cache, which the loop carries, so that a step writes one row in place
    (stacked for a `scan` over layers, XLA copies all of them each step). Its keys are those of all positions, masked by
    `window`, or with `ring` those of the last `window` ones.
    """

    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        config: Mapping[str, Any],
        window: int | None = None,
        ring: bool = False,
    ):
        self.window, self.ring = window, ring
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.width = config.get("head_dim") or config["hidden_size"] // self.heads
        self.epsilon, self.theta = config["rms_norm_eps"], rope_theta(config)

        def joined(n: int, *names: str) -> jax.Array:
            return jnp.concatenate([jnp.asarray(weights[f"model.layers.{n}.{name}.weight"]) for name in names])

        self.parameters = {
            "table": jnp.asarray(weights["model.embed_tokens.weight"]),
            "head": jnp.asarray(weights.get("lm_head.weight", weights["model.embed_tokens.weight"])),
            "final_norm": jnp.asarray(weights["model.norm.weight"]),
            "layers": [
                {
                    "qkv": joined(n, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                    "o": joined(n, "self_attn.o_proj"),
                    "gate_up": joined(n, "mlp.gate_proj", "mlp.up_proj"),
                    "down": joined(n, "mlp.down_proj"),
                    "norm_in": joined(n, "input_layernorm"),
                    "norm_post": joined(n, "post_attention_layernorm"),
                }
                for n in range(config["num_hidden_layers"])
            ],
        }

    def jit(self, length: int, steps: int | None = None) -> Any:
        """`(parameters, prompt) -> tokens` of this length, of which the first `steps` are decoded, all of them where
        nothing is said: another length needs another compile."""
        return jax.jit(partial(self.generate, length=length, steps=length if steps is None else steps))

    def generate(self, parameters: Any, prompt: jax.Array, length: int, steps: int) -> jax.Array:
        batch, prompt_length = prompt.shape
        rows = self.window if self.ring and self.window is not None else length
        shape = (batch, self.kv_heads, rows, self.width)
        caches = [(jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.float32)) for _ in parameters["layers"]]
        tokens = jnp.zeros((batch, length), jnp.int32).at[:, :prompt_length].set(prompt)

        def step(t: Any, carry: Any) -> Any:
            tokens, caches = carry
            x, caches = self.trunk(parameters, tokens[:, t], t, caches)

            def choose(_: Any) -> jax.Array:
                normed = self.norm(x, parameters["final_norm"])
                return jnp.argmax(normed @ parameters["head"].T, axis=-1).astype(jnp.int32)

            following = lax.cond(t + 1 < prompt_length, lambda _: tokens[:, t + 1], choose, None)
            return tokens.at[:, t + 1].set(following), caches

        return lax.fori_loop(0, steps - 1, step, (tokens, caches))[0]

    def trunk(self, parameters: Any, token: jax.Array, t: Any, caches: Any) -> tuple[jax.Array, Any]:
        """The hidden state (batch, hidden) after all layers at position t, and the caches with the new rows."""
        batch, rows = token.shape[0], caches[0][0].shape[2]
        frequency = self.theta ** (-jnp.arange(0, self.width, 2, dtype=jnp.float32) / self.width)
        angle = jnp.tile(t * frequency, 2)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        place, live = t % rows, jnp.arange(rows) <= t  # a ring is full from its last place on
        if self.window is not None and not self.ring:
            live &= jnp.arange(rows) > t - self.window
        x, kept = parameters["table"][token], []
        for w, (keys, values) in zip(parameters["layers"], caches, strict=True):
            qkv = (self.norm(x, w["norm_in"]) @ w["qkv"].T).reshape(batch, -1, self.width)
            q, k, v = jnp.split(qkv, [self.heads, self.heads + self.kv_heads], axis=1)
            keys = lax.dynamic_update_slice(keys, rotate(k, cos, sin)[:, :, None], (0, 0, place, 0))
            values = lax.dynamic_update_slice(values, v[:, :, None], (0, 0, place, 0))
            kept.append((keys, values))
            q = rotate(q, cos, sin).reshape(batch, self.kv_heads, -1, self.width) * self.width**-0.5
            score = jnp.where(live, jnp.einsum("bhgd,bhnd->bhgn", q, keys), -jnp.inf)
            attended = jnp.einsum("bhgn,bhnd->bhgd", jax.nn.softmax(score), values).reshape(batch, -1)
            x = x + attended @ w["o"].T
            gate, up = jnp.split(self.norm(x, w["norm_post"]) @ w["gate_up"].T, 2, axis=-1)
            x = x + (jax.nn.silu(gate) * up) @ w["down"].T
        return x, kept

    def norm(self, x: jax.Array, weight: jax.Array) -> jax.Array:
        return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + self.epsilon) * weight


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    first, second = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate((-second, first), axis=-1) * sin
