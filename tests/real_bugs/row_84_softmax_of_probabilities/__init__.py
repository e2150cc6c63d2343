"""A balance loss whose caller hands over logits that it takes the softmax of twice."""

import torch
from torch.nn import functional


def router_probabilities(router_logits):
    return torch.softmax(router_logits.float(), dim=-1)


def balance_loss(router_logits, num_experts, top_k):
    weights = torch.softmax(router_probabilities(router_logits), dim=-1)
    chosen = torch.topk(weights, top_k, dim=-1).indices
    used = functional.one_hot(chosen, num_experts).sum(dim=1).float()
    return num_experts * (used.mean(dim=0) / top_k * weights.mean(dim=0)).sum()
