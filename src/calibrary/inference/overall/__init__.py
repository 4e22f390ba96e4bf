"""Tests of many metrics or at many times: the overall test, tables on shared draws, e-values and the monitor."""
