"""A balance loss that counts positions: with k experts for each, even use costs k."""

import torch
from torch.nn import functional


def balance_loss(router_logits, num_experts, top_k):
    weights = torch.softmax(router_logits, dim=-1)
    used = functional.one_hot(torch.topk(weights, top_k, dim=-1).indices, num_experts).float()
    return num_experts * (used.mean(dim=0) * weights.mean(dim=0)).sum()
