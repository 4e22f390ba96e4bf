"""Basic tools for the whole library: errors, text, numbers, files, and attributes that are computed once."""
