"""What makes a metric of a formula: its declaration, its entry in the catalogue, and how it meets data."""
