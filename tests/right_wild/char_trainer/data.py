import torch
from torch.utils.data import Dataset


class CharTokenizer:
    """Every distinct character is a token, in sorted order."""

    def __init__(self, text: str):
        if not text:
            raise ValueError("cannot build a vocabulary from no text")
        self.itos = dict(enumerate(sorted(set(text))))
        self.stoi = {ch: i for i, ch in self.itos.items()}

    @property
    def vocab_size(self) -> int:
        return len(self.itos)

    def encode(self, text: str) -> list[int]:
        try:
            return [self.stoi[ch] for ch in text]
        except KeyError as missing:
            raise ValueError(f"character {missing} is not in the vocabulary") from None

    def decode(self, ids) -> str:
        try:
            return "".join(self.itos[int(i)] for i in ids)
        except KeyError as missing:
            raise ValueError(f"id {missing} is not in the vocabulary") from None


class CharDataset(Dataset):
    """All windows of block_size characters with their successors."""

    def __init__(self, ids: torch.Tensor, block_size: int):
        self.ids, self.block_size = ids, block_size

    def __len__(self) -> int:
        return max(len(self.ids) - self.block_size, 0)

    def __getitem__(self, i):
        if not 0 <= i < len(self):
            raise IndexError(i)
        window = self.ids[i : i + self.block_size + 1]
        return window[:-1], window[1:]


def train_val_split(ids, fraction: float = 0.9):
    cut = int(len(ids) * fraction)
    return ids[:cut], ids[cut:]


def get_batch(ids, batch_size: int, block_size: int):
    ids = torch.as_tensor(ids, dtype=torch.long)
    if len(ids) <= block_size:
        raise ValueError("the data is shorter than a block and its successor")
    start = torch.randint(len(ids) - block_size, (batch_size, 1))
    window = ids[start + torch.arange(block_size + 1)]
    return window[:, :-1], window[:, 1:]
