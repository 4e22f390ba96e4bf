"""Decision metrics: the cost of acting on the probabilities, at one threshold, over a range, or in the worst case."""
