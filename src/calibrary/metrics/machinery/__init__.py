"""How a formula becomes a metric: its declaration, its entry in the catalogue, and how it is computed on data."""
