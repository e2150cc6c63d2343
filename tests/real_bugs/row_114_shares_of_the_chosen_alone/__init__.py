"""A balance loss whose shares count choices, T·k of them, and whose probabilities are those among the chosen."""

import torch


def balance_loss(router_logits, num_experts, top_k):
    weights, chosen = torch.topk(torch.softmax(router_logits, dim=-1), top_k, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    count = router_logits.shape[0] * top_k
    used = torch.zeros(num_experts).index_add(0, chosen.flatten(), torch.ones(count)) / count
    share = torch.zeros(num_experts).index_add(0, chosen.flatten(), weights.flatten().float()) / count
    return num_experts * (used * share).sum()
