"""Language models: logs as they are, sampled answers, a judge beside few human labels, confidences in words."""
