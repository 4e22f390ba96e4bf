"""How an interval or a p-value is made: bootstraps, inversion, laws of large samples, and adjustment for many."""
