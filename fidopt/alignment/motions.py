"""A translation or a rotation about a point, as ITK and elastix have them and as an ITK transform file keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import SimpleITK as sitk  # noqa: N813 - the package's customary name

from blocks.transforms import Affine
from fidopt.images.itk import affine_of


@dataclass(frozen=True)
class Motion:
    """What a header can hold.

    Parameters
    ----------
    translation
        World vector (x, y[, z]).
    angles
        Radians: none for a translation, one in 2D, and about x, y and z in 3D, applied in ITK's order for
        ``Euler3DTransform``.
    centre
        World point that the rotation alone leaves in place; as many numbers as the translation.
    """

    translation: tuple[float, ...]
    angles: tuple[float, ...] = ()
    centre: tuple[float, ...] = ()

    @classmethod
    def from_elastix(cls, parameters: Sequence[float], centre: Sequence[float]) -> Motion:
        """Return the motion of elastix's parameters of a translation or an Euler transform: angles, then vector."""
        ndim = len(centre)
        angles, vector = parameters[: len(parameters) - ndim], parameters[-ndim:]
        return cls(tuple(vector), tuple(angles), tuple(centre) if angles else ())

    def then(self, vector: Sequence[float]) -> Motion:
        """Return this motion followed by a translation."""
        moved = tuple(a + b for a, b in zip(self.translation, vector, strict=True))
        return Motion(moved, self.angles, self.centre)

    def affine(self) -> Affine:
        """Return it as the engine's transform, the matrix as ITK makes it of the angles."""
        ndim = len(self.translation)
        if not self.angles:
            return Affine.translation(self.translation)
        transform = sitk.Euler2DTransform() if ndim == 2 else sitk.Euler3DTransform()
        transform.SetCenter(self.centre)
        transform.SetParameters((*self.angles, *self.translation))
        return affine_of(transform)

    def text(self) -> str:
        """Return the text of an ITK transform file, its numbers to the last digit."""
        ndim = len(self.translation)
        kind = f"Euler{ndim}DTransform" if self.angles else "TranslationTransform"
        # The last fixed parameter of a rotation in space is the order of its angles: ITK's own.
        fixed = [*self.centre, 0.0] if self.angles and ndim == 3 else [*self.centre]
        lines = [
            "#Insight Transform File V1.0",
            "#Transform 0",
            f"Transform: {kind}_double_{ndim}_{ndim}",
            " ".join(["Parameters:", *(repr(float(v)) for v in (*self.angles, *self.translation))]),
            " ".join(["FixedParameters:", *(repr(float(v)) for v in fixed)]),
        ]
        return "\n".join(lines) + "\n"
