"""`rl`: iterations of PPO, A2C and REINFORCE on CartPole, 128 steps of 64 and 1024 environments, networks 4-64-64-n.

compiled: the environment is part of the program, of jax's jit (iterations are one `scan`), and of torch eager's steps;
stable-baselines3 has its PPO with its own loop over environments, one epoch over the full batch.
gymnasium: SyncVectorEnv and gymnasium's CartPole in numpy as host functions. A table says how much longer an iteration
is than the time inside the environments.

All numbers of a few iterations at small sizes are compared first, with tempo_ir's draws given to all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np

import tempo_ir as tp
from benchmarks.cartpole import TimedCartPoles
from benchmarks.harness import Report, Sheet, System, bound_of, compare, finish, jax_compiled
from benchmarks.rl_jax import JaxAgent, JaxOutside
from benchmarks.rl_programs import Settings
from benchmarks.rl_torch import Outside, TorchAgent, TorchCartPoles
from benchmarks.targets import SHARES, TARGETS
from tempo_ir.reference import philox
from tempo_ir.runtime.profile import Profile

STEPS = 128
ITERATIONS = 256
"""Iterations of a call, over the number of environments: what a call costs is shared by them."""
ALGORITHMS = (
    Settings("ppo", 64),
    Settings("ppo", 64, epochs=4, minibatch=STEPS * 16),
    Settings("a2c", 64),
    Settings("reinforce", 64),
)


def run(report: Report, quick: bool = False) -> None:
    """Add the rows of all algorithms and environments to the report."""
    rounds = 3 if quick else 7
    for settings in ALGORITHMS:
        check(replace(settings, envs=4, hidden=8, minibatch=None if settings.minibatch is None else 20))
    for settings in ALGORITHMS:
        for envs in (64,) if quick else (64, 1024):
            if report.wants(case_of(case := sized(settings, envs), "compiled")):
                compiled(report, case, rounds)
    outside(report, envs=(64,) if quick else (64, 1024), rounds=rounds)
    if find_spec("stable_baselines3") is None:
        report.notes.append("rl: stable-baselines3 is not installed, so it has no rows (`pip install tempo_ir[bench]`)")


def sized(settings: Settings, envs: int) -> Settings:
    """The settings for other many environments, with as many minibatches."""
    minibatch = None if settings.minibatch is None else settings.minibatch * envs // settings.envs
    return replace(settings, envs=envs, minibatch=minibatch)


def case_of(settings: Settings, environment: str) -> dict[str, Any]:
    name, rows = settings.algorithm, STEPS * settings.envs
    if settings.epochs > 1:
        name += f" {settings.epochs}x{rows // (settings.minibatch or rows)}"  # epochs by minibatches
    return {"algorithm": name, "environment": environment, "envs": settings.envs}


def compiled(report: Report, settings: Settings, rounds: int) -> None:
    """One iteration with CartPole inside of the program."""
    start = time.perf_counter()
    executable = tp.compile(settings.program())
    seconds = time.perf_counter() - start
    state = executable.init(seed=0)
    count = max(1, ITERATIONS // settings.envs)
    executable(I=count, T=STEPS, state=state)  # so that its peak is known
    agent = JaxAgent(settings, STEPS, state)
    jitted, jax_seconds, scratch = jax_compiled(agent.jit(count), agent.carry)

    def fused() -> float:
        agent.carry, ends = jitted(agent.carry)
        return finish(jax.block_until_ready(ends))

    def ours() -> Any:
        return executable(I=count, T=STEPS, state=state)

    def profile() -> Profile:
        return tp.profile(executable, I=count, T=STEPS, state=state)

    eager, poles = TorchAgent(settings, STEPS, state), TorchCartPoles(settings.envs)
    systems = [
        System("tempo_ir", lambda: finish(ours()), seconds, executable.stats.peak_bytes, profile=profile),
        System("jax", fused, jax_seconds, scratch),
        System("torch", lambda: finish([eager.iterate(poles) for _ in range(count)]), 0.0),
    ]
    if settings.algorithm == "ppo" and find_spec("stable_baselines3") is not None:
        systems.append(System("stable-baselines3", baselines(settings, count), 0.0))
    case = case_of(settings, "compiled")
    compare(report, "rl", case, systems, count, rounds, bound_of(0.0, operations(settings)))


def operations(settings: Settings) -> float:
    """The multiplications and additions of the products of one iteration that no program can do without.

    A network is 4-h-h-n. Learning needs its layers, the gradients of all weights, and those of what the last two layers
    take. Where each row is learnt from once, by the weights that acted, acting has computed the layers already.
    """
    h, outputs = settings.hidden, [2] if settings.algorithm == "reinforce" else [2, 1]
    forward = sum(4 * h + h * h + h * n for n in outputs)
    back = sum(h * h + h * n for n in outputs)
    passes = 2 * settings.epochs + (settings.epochs > 1 or settings.minibatch is not None)
    return 2.0 * settings.envs * STEPS * (passes * forward + settings.epochs * back)


def baselines(settings: Settings, count: int) -> Callable[[], float]:
    """Iterations of stable-baselines3's PPO at the same sizes."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    batch = settings.minibatch or STEPS * settings.envs
    model = PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", settings.envs), n_steps=STEPS, batch_size=batch,
        n_epochs=settings.epochs, gamma=settings.gamma, gae_lambda=settings.lam, ent_coef=0.01, vf_coef=0.5,
        learning_rate=settings.lr, normalize_advantage=False, policy_kwargs={"net_arch": [settings.hidden] * 2},
        device="cpu",
    )  # fmt: skip
    return lambda: finish(model.learn(total_timesteps=count * STEPS * settings.envs))


def outside(report: Report, envs: tuple[int, ...], rounds: int) -> None:
    """PPO with gymnasium's environments, and a table of its time over theirs."""
    shares = Sheet(SHARES, ("environment", "tempo_ir", "jax", "torch"))
    for vectorised in (False, True):
        for count in envs:
            settings = Settings("ppo", count)
            case = case_of(settings, "vectorised" if vectorised else "SyncVectorEnv")
            if report.wants(case):
                name = f"{case['environment']}, {count} environments"
                found = gymnasium(report, settings, case, rounds)
                shares.add(name, *(statistics.median(each) for each in found.shares.values()))
                if not all(t.is_met(shares.lines[-1][1][0]) for t in TARGETS if t.fits("rl", {"environment": name})):
                    report.add_profile("rl", case, found.profile())
    if shares.lines:
        report.sheets.append(shares)


@dataclass(frozen=True)
class Shares:
    """The seconds of runs with an environment over the seconds inside of it, per system, and the profile of a call."""

    shares: Mapping[str, Sequence[float]]
    profile: Callable[[], Profile]


def gymnasium(report: Report, settings: Settings, case: dict[str, Any], rounds: int) -> Shares:
    """Add the rows of one environment."""
    clocks: list[TimedCartPoles] = []

    def environments() -> TimedCartPoles:
        clocks.append(TimedCartPoles(settings.envs, case["environment"] == "vectorised"))
        return clocks[-1]

    start = time.perf_counter()
    executable = tp.compile(settings.program(environments))
    seconds = time.perf_counter() - start
    state, count = executable.init(seed=0), max(1, ITERATIONS // settings.envs)
    static, eager = JaxOutside(settings, STEPS, state), TorchAgent(settings, STEPS, state)

    def eagerly(poles: Outside) -> None:
        for _ in range(count):
            eager.iterate(poles)

    work: Mapping[str, Callable[[], Any]] = {
        "tempo_ir": lambda: executable(I=count, T=STEPS, state=state),
        "jax": lambda: static.iterate(environments(), count),
        "torch": lambda: eagerly(Outside(environments())),
    }
    shares: dict[str, list[float]] = {name: [] for name in ("tempo_ir", "jax", "torch")}

    def timed(name: str) -> Callable[[], float]:
        def once() -> float:
            begin = time.perf_counter()
            work[name]()
            shares[name].append((time.perf_counter() - begin) / clocks[-1].seconds)
            return 0.0

        return once

    timed("tempo_ir")()
    start = time.perf_counter()
    timed("jax")()
    compiles = {"tempo_ir": seconds, "jax": time.perf_counter() - start, "torch": 0.0}
    peaks = {"tempo_ir": executable.stats.peak_bytes}
    systems = [System(name, timed(name), compiles[name], peaks.get(name)) for name in work]
    compare(report, "rl", case, systems, count, rounds)
    last = {name: found[-rounds:] for name, found in shares.items()}
    return Shares(last, lambda: tp.profile(executable, I=count, T=STEPS, state=state))


def check(settings: Settings, steps: int = 30, iterations: int = 3, seed: int = 5) -> None:
    """All systems end with the same networks. Raises SystemExit where they do not."""
    executable = tp.compile(settings.program())
    state = executable.init(seed=0)
    ours = executable(I=iterations, T=steps, state=state, seed=seed)
    draws = draws_of(settings, steps, iterations, seed)
    agent = JaxAgent(settings, steps, state, draws)
    carry, ends = agent.jit(iterations)(agent.carry)
    eager, poles = TorchAgent(settings, steps, state, draws), TorchCartPoles(settings.envs, draws)
    torch_ends = [eager.iterate(poles) for _ in range(iterations)]
    for system, theirs in {"jax": np.asarray(ends), "torch": np.array(torch_ends)}.items():
        if not np.array_equal(theirs, ours["ends"]):
            raise SystemExit(f"rl: {settings}: {system} ends {theirs} episodes, tempo_ir {ours['ends']}")
    networks = {"policy": eager.policy, "critic": eager.critic}
    for name, layers in carry[0][0].items():
        for n, (weight, bias) in enumerate(layers):
            module = networks[name][2 * n]
            found = {
                "weight": (weight.T, module.weight.detach().numpy()), "bias": (bias, module.bias.detach().numpy())
            }  # fmt: skip
            for key, pair in found.items():
                for system, theirs in zip(("jax", "torch"), pair, strict=True):
                    mine = ours.state[f"{name}.{n}.{key}"]
                    if not np.allclose(theirs, mine, rtol=1e-3, atol=1e-5):
                        raise SystemExit(f"rl: {settings}: {system} and tempo_ir differ in {name}.{n}.{key}")


def draws_of(settings: Settings, steps: int, iterations: int, seed: int) -> dict[str, np.ndarray]:
    """The numbers that the program draws, in the order of its ops: actions, first and fresh states, permutations."""
    envs = settings.envs

    def uniform(identity: int, point: tuple[int, ...], width: int) -> np.ndarray:
        return philox.uniform(philox.blocks(seed, identity, point, (envs, width)), np.dtype(np.float32))

    def begin(identity: int, point: tuple[int, ...]) -> np.ndarray:
        return uniform(identity, point, 4) * np.float32(0.1) - np.float32(0.05)

    points = [[(i, t) for t in range(steps)] for i in range(iterations)]
    draws = {
        "noise": np.array([[-np.log(-np.log(uniform(0, point, 2))) for point in row] for row in points]),
        "first": begin(1, ()),
        "fresh": np.array([[begin(2, point) for point in row] for row in points]),
    }
    if settings.minibatch is not None:
        rows = (envs * steps,)
        draws["order"] = np.array(
            [
                [
                    np.argsort(philox.bits(philox.blocks(seed, 3, (i, e), rows)), kind="stable")
                    for e in range(settings.epochs)
                ]
                for i in range(iterations)
            ]
        )
    return draws
