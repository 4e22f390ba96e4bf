"""The version, apart from everything else, so that any floor can print it."""

__version__ = "0.2.0"
