"""Point family (rows 1-22 of Table 2): mean scores of single predictions, overall bias, and decompositions."""
