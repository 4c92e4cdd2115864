"""What sdg-vectorize is made of: `recurrence` tells which ops may do all points of a dim at once, `batching` how each
op does, `views` how its result is read from then on.
"""
