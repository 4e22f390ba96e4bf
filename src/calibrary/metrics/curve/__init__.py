"""Metrics of a fitted calibration curve (rows 60, 64-72 of Table 2): a calibration map is fitted, then summarised."""
