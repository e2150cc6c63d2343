"""A small GPT in objects: a config, a sampler, beams, a corpus, a trainer."""
