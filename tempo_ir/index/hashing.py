"""Values whose hash is worked out once."""

from __future__ import annotations

from typing import ClassVar


class HashedOnce:
    """
    Base of a frozen dataclass, with slots or without, that is a key of many tables: its hash is kept beside the fields.

    The class says `__hash__ = HashedOnce.__hash__`, for a dataclass makes its own otherwise. Copies and pickles hold
    the fields alone: the hash of a text is another one in each process.
    """

    __slots__ = ("_hash",)
    _hash: int
    __match_args__: ClassVar[tuple[str, ...]]
    """Where a dataclass has the names of its fields."""

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash(
                tuple([getattr(self, name) for name in self.__match_args__])
            )  # a dataclass has its fields there
            object.__setattr__(self, "_hash", value)
            return value
