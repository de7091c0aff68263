"""Numba kernels on NumPy blocks."""
