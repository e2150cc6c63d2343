import torch


def subsequent_mask(size):
    "(1, size, size), True where a position may look."
    return torch.triu(torch.ones(1, size, size), diagonal=1) == 0


class Batch:
    "Holds a batch with its masks, the target split into what is read and what is predicted."

    def __init__(self, src, tgt=None, pad=0):
        self.src = src
        self.src_mask = (src != pad).unsqueeze(-2)
        if tgt is not None:
            self.tgt = tgt[:, :-1]
            self.tgt_y = tgt[:, 1:]
            self.tgt_mask = (self.tgt != pad).unsqueeze(-2) & subsequent_mask(self.tgt.size(-1)).to(tgt.device)
            self.ntokens = (self.tgt_y != pad).sum()
