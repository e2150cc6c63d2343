"""M2M100 of transformers, bound by conform.toml alone."""
