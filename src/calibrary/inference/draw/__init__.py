"""Replicates of the data: what is measured on each, the loops over random numbers, and fast ways through them."""
