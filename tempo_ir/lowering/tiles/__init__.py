"""Tile kernels made better: passes from kernels to kernels."""
