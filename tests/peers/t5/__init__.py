"""Attention and layers of T5 of transformers, bound by conform.toml alone."""
