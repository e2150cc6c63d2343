"""mBART of transformers, bound by conform.toml alone."""
