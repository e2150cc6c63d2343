import torch
from torch import nn


class LabelSmoothingLoss(nn.Module):
    """Cross-entropy against (1 - smoothing) * onehot + smoothing / vocab_size, over what is not ignored."""

    def __init__(self, vocab_size, smoothing=0.1, ignore_index=-100):
        super().__init__()
        self.vocab_size = vocab_size
        self.smoothing = smoothing
        self.confidence = 1.0 - smoothing
        self.ignore_index = ignore_index

    def forward(self, logits, targets):
        logits = logits.reshape(-1, self.vocab_size)
        targets = targets.reshape(-1)
        keep = targets != self.ignore_index
        logits, targets = logits[keep], targets[keep]
        if targets.numel() == 0:
            return logits.sum()  # nothing to learn from: 0, with gradients of 0
        log_probs = torch.log_softmax(logits, dim=-1)
        true_dist = torch.full_like(log_probs, self.smoothing / self.vocab_size)
        true_dist.scatter_add_(1, targets.unsqueeze(1), torch.full_like(log_probs[:, :1], self.confidence))
        return -(true_dist * log_probs).sum(dim=-1).mean()


class SimpleLossCompute:
    """Loss of a batch, and the update where there is an optimizer."""

    def __init__(self, criterion, opt=None):
        self.criterion, self.opt = criterion, opt

    def __call__(self, logits, targets):
        loss = self.criterion(logits, targets)
        if self.opt is not None:
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


def token_accuracy(logits, targets, pad_id):
    """The share of real tokens whose best guess is right."""
    real = targets != pad_id
    hits = (logits.argmax(dim=-1) == targets) & real
    return hits.sum().item() / max(real.sum().item(), 1)
