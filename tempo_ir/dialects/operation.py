"""The base of all ops of this package: operations of xDSL whose questions of identity and kind Python answers itself.

A compile asks a hundred thousand times whether an op is of some class, and as often has one in a dict or a set.
"""

from __future__ import annotations

from abc import ABCMeta

from xdsl.irdl import IRDLOperation


class NominalMeta(ABCMeta):
    """Abstract classes of which nobody registers virtual subclasses: an instance is one by its bases, which Python
    knows without a function call, a cache per pair of classes and a search of all subclasses before it."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class NominalOperation(IRDLOperation, metaclass=NominalMeta):
    """An operation, which equals itself alone."""

    __hash__ = object.__hash__
