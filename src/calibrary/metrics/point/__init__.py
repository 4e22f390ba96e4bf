"""Point family (rows 1-22 of Table 2): scores of single predictions, averaged; global bias; decompositions."""
