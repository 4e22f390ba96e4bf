"""Decisions: what acting on the probabilities costs, at one threshold, over a range of them, or at the worst."""
