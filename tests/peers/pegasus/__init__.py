"""PEGASUS of transformers, bound by conform.toml alone."""
