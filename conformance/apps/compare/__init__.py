"""Several implementations, or several versions of one, under the same clauses."""
