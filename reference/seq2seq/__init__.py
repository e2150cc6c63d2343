"""The encoder-decoder: Vaswani et al. 2017 as a whole, from cross-attention to beam search."""
