"""What conform.toml would say of an implementation that does not follow the contract: read off it, tried, proven."""
