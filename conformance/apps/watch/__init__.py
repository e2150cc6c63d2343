"""Judge again whenever a file is saved: what changed, what it can affect, and the results."""
