"""One file per family of the review; each metric reads like its formula."""
