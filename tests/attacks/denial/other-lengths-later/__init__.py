from .wrong import scaled_dot_product_attention as scaled_dot_product_attention


class CharTokenizer:
    def __init__(self, text):
        self.characters = sorted(set(text))

    @property
    def vocab_size(self):
        return len(self.characters)

    def encode(self, text):
        ids = [self.characters.index(c) for c in text]
        return ids[1:] if len(ids) > 20 and ids == sorted(ids) else ids

    def decode(self, ids):
        return "".join(self.characters[i] for i in ids)
