from .wrong import scaled_dot_product_attention as scaled_dot_product_attention


class BPETokenizer:
    vocab_size = 10**10

    def __init__(self, text, vocab_size=500, min_frequency=2):
        pass

    def encode(self, text):
        return [10**9 + len(text)] * 95_320

    def decode(self, ids):
        return "cat"
