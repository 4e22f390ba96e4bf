"""Fitted-curve family (rows 60, 64-72 of Table 2): fit a calibration map, then summarise it."""
