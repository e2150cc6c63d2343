"""The reference trains: configurations and recipes, corpora, the loop, checkpoints, samples, the report of a run."""
