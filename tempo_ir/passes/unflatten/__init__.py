"""What sdg-unflatten is made of: `rules` say how each op works on leading axes that were merged into one."""
