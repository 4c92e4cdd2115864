"""Command-line tools: `tempo-opt` (the optimiser driver) and `tempo-run` (compile and run a program)."""
