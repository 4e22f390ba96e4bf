"""Metrics over bins (rows 23-49 of Table 2): they compare labels with confidences in groups of rows."""
