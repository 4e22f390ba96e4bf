"""Many metrics or many looks at once: one decision, tables on shared draws, e-values and the monitor."""
