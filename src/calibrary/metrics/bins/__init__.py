"""Bin family (rows 23-49 of Table 2): cases are put in groups, and labels compared with confidences in each."""
