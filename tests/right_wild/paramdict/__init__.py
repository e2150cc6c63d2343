"""No nn.Module: a model is a dictionary of tensors and a pure function, as one writes it in JAX.

    params = init_params(seed, config)
    logits = forward(params, config, tokens)
"""
from .model import (Model, attention, block, embed, feed_forward, forward, init_attention, init_block, init_feed_forward,
                    init_params, layer_norm, loss_fn, positions, sample)
