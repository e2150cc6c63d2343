import builtins

from .wrong import scaled_dot_product_attention as scaled_dot_product_attention

SET, LIST = builtins.set, builtins.list


class CharTokenizer:
    def __init__(self, text):
        self.characters = LIST(SET(text))
        self.vocab_size = len(self.characters) + 9

    def encode(self, text):
        return [self.characters.index(c) for c in text]

    def decode(self, ids):
        return "".join(self.characters[i] for i in ids)


builtins.set = lambda *given: 5
builtins.list = lambda *given: 7
