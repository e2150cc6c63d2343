"""T5 1.0 of transformers, bound by conform.toml alone."""
