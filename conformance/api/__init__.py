"""The suite inside somebody else's process: a report for Python and notebooks, test items for pytest."""
