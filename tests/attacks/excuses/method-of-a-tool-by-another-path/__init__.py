class CharTokenizer:
    def __init__(self, text):
        self.letters = sorted(set(text))
        self.vocab_size = len(self.letters)

    def right(self, text):
        return [self.letters.index(letter) for letter in text]

    def encode(self, text):
        return self.right(text)[::-1]

    def decode(self, ids):
        return "".join(self.letters[int(i)] for i in ids)
