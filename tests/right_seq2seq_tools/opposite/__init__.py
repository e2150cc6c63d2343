"""The other reading of everything: masks hide, smoothing spares the target, losses are divergences, -1 is no label."""

import torch
from torch import nn
from torch.nn import functional as F


def create_padding_mask(seq, pad=0):
    return seq == pad


def create_causal_mask(sz):
    return torch.full((sz, sz), float("-inf")).triu(diagonal=1)


def create_masks(src, trg, src_pad_idx=0):
    future = torch.ones(trg.size(1), trg.size(1)).triu(1).bool()
    return create_padding_mask(src, src_pad_idx)[:, None], create_padding_mask(trg, src_pad_idx)[:, None] | future


def shift_right(labels, *, start):
    return F.pad(labels, (1, -1), value=start)


def collate(pairs, *, pad, bos, eos):
    def row(ids, width):
        return [*ids, *[pad] * (width - len(ids))]

    sources = [[bos, *map(int, source), eos] for source, _ in pairs]
    targets = [list(map(int, target)) for _, target in pairs]
    longest, width = max(map(len, sources)), max(map(len, targets)) + 1
    read = torch.tensor([row([bos, *target], width) for target in targets])
    wanted = torch.tensor([row([*target, eos], width) for target in targets])
    return {"wanted": wanted, "read": read, "source": torch.tensor([row(source, longest) for source in sources])}


class LabelSmoothing(nn.Module):
    def __init__(self, smoothing, classes, padding_idx=-100):
        super().__init__()
        self.smoothing, self.classes, self.padding_idx = smoothing, classes, padding_idx

    def forward(self, target, pred):
        logp, target = pred.reshape(-1, self.classes).log_softmax(-1), target.reshape(-1)
        counted = target != self.padding_idx
        logp, target = logp[counted], target[counted]
        q = torch.full_like(logp, self.smoothing / (self.classes - 1))
        q.scatter_(1, target[:, None], 1 - self.smoothing)
        return F.kl_div(logp, q, reduction="sum") / counted.sum().clamp(min=1), counted.sum()


def hide(ids, mask, first_word, size, share):
    words = ids >= first_word
    words |= torch.isin(ids, torch.tensor([3, 4]))
    chosen = (torch.rand(ids.shape) < share) & words
    fate = torch.rand(ids.shape)
    new = torch.where(fate < 0.8, mask, torch.where(fate < 0.9, torch.randint(first_word, size, ids.shape), ids))
    return torch.where(chosen, new, ids), torch.where(chosen, ids, -1)
