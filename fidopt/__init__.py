"""An open benchmark of image registration."""

__version__ = "0.1.0"
