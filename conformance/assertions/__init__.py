"""Draws, comparisons, and the messages of failed ones; independent of components."""
