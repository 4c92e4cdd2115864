"""Reverse-mode differentiation of cyclic graphs, as sdg-autodiff uses it.

`activity` finds what lies between the leaves and the loss, `inverse_reads` turns a read of the program into the reads
of its adjoint, `rules_*` hold the derivative of every op, `adjoints` adds contributions up, `expansion` ties them
together.
"""
