"""Processes that make workers, and what they use."""
