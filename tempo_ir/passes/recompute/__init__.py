"""What sdg-remat is made of: `sides` tells the forward from the backward recurrences of a dim, `plan` what is computed
anew and in blocks of how many steps, `blocks` puts points of the dim into blocks, `rewrite` builds the program over
them, `totals` keeps sums over all steps block by block.
"""
