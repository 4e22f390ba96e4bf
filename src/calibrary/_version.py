"""The version, in a separate module without imports, so that every package can import it."""

__version__ = "0.4.0"
