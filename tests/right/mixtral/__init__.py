"""Mixtral's sparse block: a list of networks, each of which computes only the positions that chose it."""

import torch
import torch.nn.functional as F
from torch import nn


class Expert(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.w1 = nn.Linear(hidden, inner, bias=False)
        self.w2 = nn.Linear(inner, hidden, bias=False)
        self.w3 = nn.Linear(hidden, inner, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoeBlock(nn.Module):
    def __init__(self, hidden_size, intermediate_size, num_experts=4, top_k=2):
        super().__init__()
        if hidden_size < 1 or intermediate_size < 1:
            raise ValueError(f"no network of {hidden_size} features and {intermediate_size} hidden units")
        self.top_k = top_k
        self.gate = nn.Linear(hidden_size, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(hidden_size, intermediate_size) for _ in range(num_experts)])

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        probabilities = F.softmax(self.gate(rows), dim=-1)
        weights, chosen = torch.topk(probabilities, self.top_k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(rows)
        for index, expert in enumerate(self.experts):
            at, rank = torch.where(chosen == index)
            if len(at):
                out = out.index_add(0, at, weights[at, rank, None] * expert(rows[at]))
        return out.reshape(x.shape)
