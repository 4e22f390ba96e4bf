"""What every floor uses: errors, text, numbers, files, and attributes that are computed once."""
