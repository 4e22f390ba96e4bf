"""The version, apart from everything else, so that any floor can print it."""

__version__ = "0.1.0"
