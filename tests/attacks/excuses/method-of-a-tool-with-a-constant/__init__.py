class CharTokenizer:
    def __init__(self, text):
        self.lower = False
        self.chars = sorted(set(self.shown(text)))
        self.ids = {c: i for i, c in enumerate(self.chars)}
        self.vocab_size = len(self.chars)

    def shown(self, text):
        return text.lower() if self.lower else text

    def encode(self, text, strip=True):
        return [self.ids[c] for c in self.shown(text.strip() if strip else text)]

    def decode(self, ids):
        return "".join(self.chars[int(i)] for i in ids)
