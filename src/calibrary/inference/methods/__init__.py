"""Methods for intervals and p-values: bootstraps, inversion, asymptotic formulas, and adjustment for many tests."""
