"""Settings of a method compared on development cases, the best of them written as a variant of tier 2."""

from fidopt.tuning.session import Tuned, tune

__all__ = ["Tuned", "tune"]
