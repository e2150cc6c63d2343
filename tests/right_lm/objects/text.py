import torch


class Vocabulary:
    """Characters and their numbers, in the order in which they first come."""

    def __init__(self, symbols):
        self.symbols = list(symbols)
        self.index = {s: n for n, s in enumerate(self.symbols)}

    @classmethod
    def of(cls, text):
        return cls(dict.fromkeys(text))

    def __len__(self):
        return len(self.symbols)

    def numbers(self, text):
        try:
            return [self.index[c] for c in text]
        except KeyError as error:
            raise ValueError(f"unknown character {error}") from None

    def text(self, numbers):
        return "".join(self.symbols[n] for n in numbers)


class Merges:
    """Byte pairs, as in GPT-2 but without its split into words."""

    def __init__(self, size, least=2):
        self.size, self.least = size, least
        self.ranks = {}
        self.table = [bytes([b]) for b in range(256)]

    def train(self, text):
        ids = list(text.encode())
        while len(self.table) < self.size:
            pair, n = self.best(ids)
            if n < self.least:
                break
            self.ranks[pair] = len(self.table)
            ids = self.apply(ids, pair, len(self.table))
            self.table.append(self.table[pair[0]] + self.table[pair[1]])
        return self

    @staticmethod
    def best(ids):
        counts = {}
        for pair in zip(ids, ids[1:]):
            counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            return None, 0
        pair = max(counts, key=counts.get)
        return pair, counts[pair]

    @staticmethod
    def apply(ids, pair, new):
        out = []
        i = 0
        while i < len(ids):
            if tuple(ids[i : i + 2]) == pair:
                out.append(new)
                i += 2
            else:
                out.append(ids[i])
                i += 1
        return out

    def encode(self, text):
        ids = list(text.encode())
        while len(ids) > 1:
            pair = min(zip(ids, ids[1:]), key=lambda p: self.ranks.get(p, float("inf")))
            if pair not in self.ranks:
                break
            ids = self.apply(ids, pair, self.ranks[pair])
        return ids

    def decode(self, ids):
        return b"".join(self.table[i] for i in ids).decode("utf-8", "replace")

    def __len__(self):
        return len(self.table)


def learn_merges(text, size=500, least=2):
    return Merges(size, least).train(text)


class Corpus:
    def __init__(self, ids, share=0.9):
        cut = int(len(ids) * share)
        self.train, self.valid = ids[:cut], ids[cut:]


def halves(ids, share=0.9):
    corpus = Corpus(ids, share)
    return corpus.train, corpus.valid


class Windows:
    """Windows of a row of ids, each with the ids that follow."""

    def __init__(self, ids, length):
        if len(ids) <= length:
            raise ValueError(f"{len(ids)} ids are too few for a window of {length} and its target")
        self.ids, self.length = ids, length

    def __len__(self):
        return len(self.ids) - self.length

    def __getitem__(self, i):
        piece = self.ids[i : i + self.length + 1]
        return piece[:-1], piece[1:]

    def sample(self, n):
        return self.stack(torch.randint(0, len(self), (n,)).tolist())

    def every(self):
        return self.stack(range(len(self)))

    def stack(self, starts):
        pairs = [self[i] for i in starts]
        return torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs])


def sample(ids, n, length):
    return Windows(ids, length).sample(n)


def every(ids, length):
    return Windows(ids, length).every()
