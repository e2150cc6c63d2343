import torch
from torch.nn import functional as F


def train_step(trunk, head, optimizer, ids):
    states, _ = trunk(ids[:, :-1])
    loss = F.cross_entropy(head(states).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def next_ids(trunk, head, ids, count, temperature=1.0):
    for _ in range(count):
        states, _ = trunk(ids[:, -trunk.longest :])
        scores = head(states[:, -1])
        if temperature == 0:
            new = scores.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial((scores / temperature).softmax(-1), 1)
        ids = torch.cat([ids, new], 1)
    return ids
