"""Kernel family (rows 50-59 and 61-63 of Table 2)."""
