DEFAULTS = {
    "vocab_size": 256,
    "emb_dim": 64,
    "n_heads": 4,
    "n_layers": 2,
    "hidden_dim": 256,
    "context_length": 128,
    "drop_rate": 0.0,
    "qkv_bias": False,
}


def complete(cfg):
    """The given settings, and the defaults for the rest."""
    unknown = set(cfg) - set(DEFAULTS)
    if unknown:
        raise ValueError(f"unknown settings: {sorted(unknown)}")
    return {**DEFAULTS, **cfg}
