"""Policies that need no file: `conform grade submissions --policy course`."""
