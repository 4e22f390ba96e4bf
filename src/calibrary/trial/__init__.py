"""The statistics of a trial: numbers of rows for a precision, results across centres, completed data sets."""
