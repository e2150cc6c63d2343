"""Layer and encoder of BERT of transformers, bound by conform.toml alone."""
