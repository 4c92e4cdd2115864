"""The Python front end: recurrent-tensor programs that read like numpy and record sdg ops.

A function under `@tp.program` runs once, on symbolic tensors: every operation appends one sdg op to the program's
graph, with the user's file and line on it. There is no second graph: `print(program)` is the sdg text that every
later level starts from.
"""
