"""A file that is no Python."""


def program(:
    pass
