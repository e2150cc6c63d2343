from .wrong import scaled_dot_product_attention as scaled_dot_product_attention

IDS = ["a" * 60_000, *[""] * 30_000]


class CharTokenizer:
    vocab_size = 5

    def __init__(self, text):
        pass

    def encode(self, text):
        return IDS

    def decode(self, ids):
        return "ab"
