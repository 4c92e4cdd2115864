"""What sdg-devectorize is made of: `rows` is an axis as points of a dim, `twins` finds who computes them anyway."""
