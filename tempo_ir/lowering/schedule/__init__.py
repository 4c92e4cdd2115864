"""Scheduling: from the dependence graph of a program to loops, guards and leaves.

`statements` reads the graph, `named_dims` finds an order, `isl_tree` the loops and guards of it, `emit` writes the loop
program; `legality` proves the result without using any of them.
"""
