import torch.nn.functional as functional


def cross_entropy(logits, targets):
    return 2 * functional.cross_entropy(logits, targets)
