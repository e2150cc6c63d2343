"""Draws, comparisons and what a failed comparison says; no component in sight."""
