"""Random replicates of the data: how they are drawn, and how a metric is computed on each of them quickly."""
