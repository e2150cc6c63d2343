import torch
from torch.nn import functional as F


def sample(*, source, rows, context, device):
    starts = torch.randint(0, source.numel() - context, [rows], device=device)
    windows = torch.stack([source[s : s + context + 1] for s in starts])
    return {"inputs": windows[:, :-1].int(), "labels": windows[:, 1:].long(), "starts": starts}


def score(labels, logits, reduction, pad):
    losses = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=pad, reduction="none")
    if reduction == "none":
        return losses
    return losses.sum() / (labels != pad).sum()


class Descent:
    """Adam with decay, over a list of tensors, written with dictionaries."""

    def __init__(self, tensors, rate, beta1, beta2, epsilon, decay):
        self.tensors = list(tensors)
        self.options = rate, beta1, beta2, epsilon, decay
        self.memory = {}

    def forget(self):
        for t in self.tensors:
            if t.grad is not None:
                t.grad.zero_()

    @torch.no_grad()
    def move(self):
        rate, beta1, beta2, epsilon, decay = self.options
        for i, t in enumerate(self.tensors):
            if t.grad is None:
                continue
            n, m, v = self.memory.get(i, (0, torch.zeros_like(t), torch.zeros_like(t)))
            n, m, v = n + 1, beta1 * m + (1 - beta1) * t.grad, beta2 * v + (1 - beta2) * t.grad**2
            self.memory[i] = n, m, v
            t.sub_(rate * decay * t)
            t.sub_(rate * (m / (1 - beta1**n)) / ((v / (1 - beta2**n)).sqrt() + epsilon))


def learn(batch_x, batch_y, net, how):
    how.zero_grad()
    net.train()
    loss = F.cross_entropy(net(batch_x).transpose(1, 2), batch_y)
    loss.backward()
    how.step()
    return {"loss": loss.detach(), "size": batch_x.shape}
