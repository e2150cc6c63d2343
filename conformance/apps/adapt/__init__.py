"""Draft a conform.toml for an implementation that does not follow the contract: guess, try, and check by a run."""
