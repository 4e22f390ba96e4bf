"""One package per family of the review, in which each metric reads like its formula, and the machinery they share."""
