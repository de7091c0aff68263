"""The ``appearance`` of a prepared image's reference: how the moving side of a pair made from one image looks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, NonNegativeInt

from fidopt.descriptors.base import Descriptor


class Appearance(Descriptor):
    """What is done to the values of a moving image once it is where it will be.

    Parameters
    ----------
    mix
        A row a channel: its value as a sum over the channels (one number a row for an image without channels).
    offset
        Added to each channel.
    slope, curve
        Light: one plus ``slope`` (world x, y[, z]) times the position from -1 to 1 along each axis, minus ``curve``
        times the sum of their squares.
    noise
        Standard deviation of what is added to every value.
    """

    mix: tuple[tuple[float, ...], ...] = ()
    offset: tuple[float, ...] = ()
    slope: tuple[float, ...] = ()
    curve: float = 0.0
    noise: Annotated[float, Field(ge=0)] = 0.0
    seed: NonNegativeInt = 0
