"""The suite inside another process: a report for Python and notebooks, test items for pytest."""
