class Vocabulary:
    def __init__(self, *, corpus, order):
        self.letters = sorted(set(corpus), reverse=order == "falling")

    def __len__(self):
        return len(self.letters)

    def ids_of(self, s):
        return tuple(self.letters.index(c) for c in s)

    def text_of(self, numbers, joiner):
        return joiner.join(self.letters[int(n)] for n in numbers)
