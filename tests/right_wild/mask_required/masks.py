import torch


def future_mask(size, device=None):
    """True above the diagonal: those keys are hidden."""
    return torch.triu(torch.ones(size, size, dtype=torch.bool, device=device), diagonal=1)


def nothing_hidden(size, device=None):
    return torch.zeros(size, size, dtype=torch.bool, device=device)
