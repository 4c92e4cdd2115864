"""The rules of sdg-simplify, as tables from op class to small functions.

A rule looks at one op, rewrites it and says so, or leaves it alone and says that. `rule` holds what rules are made of.
"""
