"""The graph algorithms that passes use; they live in `tempo_ir.graphs`, which the dialects share."""

from tempo_ir.graphs import is_cyclic, reachable, shortest_path, strongly_connected

__all__ = ["is_cyclic", "reachable", "shortest_path", "strongly_connected"]
