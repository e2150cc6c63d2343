import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    """Everything in one module: blocks are rows of parameter stacks, maps are einsum."""

    def __init__(self, n_tokens, width, n_heads, depth, n_hidden, window, p_drop=0.0):
        super().__init__()
        if width % n_heads:
            raise ValueError("heads must divide the width")
        self.n_heads, self.window, self.p = n_heads, window, p_drop
        h, d = n_heads, width // n_heads

        def noise(*shape):
            return nn.Parameter(torch.randn(*shape) * 0.05)

        self.wte = noise(n_tokens, width)
        self.wpe = noise(window, width)
        self.wq, self.wk, self.wv = (noise(depth, width, h, d) for _ in range(3))
        self.wo = noise(depth, h, d, width)
        self.up, self.up_b = noise(depth, width, n_hidden), nn.Parameter(torch.zeros(depth, n_hidden))
        self.down, self.down_b = noise(depth, n_hidden, width), nn.Parameter(torch.zeros(depth, width))
        self.g1, self.b1 = nn.Parameter(torch.ones(depth, width)), nn.Parameter(torch.zeros(depth, width))
        self.g2, self.b2 = nn.Parameter(torch.ones(depth, width)), nn.Parameter(torch.zeros(depth, width))
        self.gf, self.bf = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.out = noise(width, n_tokens)
        self.out_b = nn.Parameter(torch.zeros(n_tokens))

    @staticmethod
    def norm(x, g, b):
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + 1e-5) * g + b

    def drop(self, x):
        return nn.functional.dropout(x, self.p, self.training)

    def attend(self, x, i):
        q = torch.einsum("btm,mhd->bhtd", x, self.wq[i])
        k = torch.einsum("btm,mhd->bhtd", x, self.wk[i])
        v = torch.einsum("btm,mhd->bhtd", x, self.wv[i])
        s = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
        t = s.shape[-1]
        s = s + torch.triu(torch.full((t, t), float("-inf"), dtype=s.dtype), 1)
        a = self.drop(torch.softmax(s, -1))
        return torch.einsum("bhqk,bhkd,hdm->bqm", a, v, self.wo[i])

    def forward(self, ids):
        t = ids.shape[1]
        if t > self.window:
            raise ValueError("too many tokens")
        x = self.drop(self.wte[ids] + self.wpe[:t])
        for i in range(self.wq.shape[0]):
            x = x + self.drop(self.attend(self.norm(x, self.g1[i], self.b1[i]), i))
            n = self.norm(x, self.g2[i], self.b2[i])
            hidden = nn.functional.gelu(n @ self.up[i] + self.up_b[i], approximate="tanh")
            x = x + self.drop(hidden @ self.down[i] + self.down_b[i])
        return self.norm(x, self.gf, self.bf) @ self.out + self.out_b


def distribution(logits, temperature, top_k, top_p):
    """Probabilities of the next ids, (B, V), in NumPy."""
    logits = logits.astype(np.float64) / temperature
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    for row in p:
        ranked = np.argsort(-row, kind="stable")
        keep = len(row)
        if top_k:
            keep = min(keep, top_k)
            row[ranked[keep:]] = 0
            row /= row.sum()
        if top_p is not None:
            keep = min(keep, int(np.searchsorted(np.cumsum(row[ranked]), top_p)) + 1)
        row[ranked[keep:]] = 0
        row /= row.sum()
    return p


def write(net, ids, n, temperature=1.0, top_k=None, top_p=None, eos=None):
    was = net.training
    net.eval()
    over = np.zeros(len(ids), bool)
    with torch.no_grad():
        for _ in range(n):
            logits = net(ids[:, -net.window :])[:, -1]
            if temperature == 0:
                nxt = logits.argmax(-1)
            else:
                p = distribution(logits.numpy(), temperature, top_k, top_p)
                nxt = torch.multinomial(torch.from_numpy(p), 1)[:, 0]
            if eos is not None:
                nxt[torch.from_numpy(over)] = eos
                over |= nxt.numpy() == eos
            ids = torch.cat([ids, nxt[:, None]], 1)
            if over.all():
                break
    net.train(was)
    return ids


def search(net, ids, n, width, penalty=0.0, eos=None):
    was = net.training
    net.eval()
    results = []
    with torch.no_grad():
        for row in ids.tolist():
            beams = [(0.0, [], False)]
            for _ in range(n):
                grown = [b for b in beams if b[2]]
                open_ = [b for b in beams if not b[2]]
                if not open_:
                    break
                batch = torch.tensor([(row + b[1])[-net.window :] for b in open_])
                logp = net(batch)[:, -1].log_softmax(-1).double().numpy()
                for (total, new, _), lp in zip(open_, logp):
                    for i in np.argsort(-lp)[:width]:
                        grown.append((total + lp[i], new + [int(i)], int(i) == eos))
                grown.sort(key=lambda b: b[0] / len(b[1]) ** penalty, reverse=True)
                beams = grown[:width]
            results.append(
                [
                    (row + new + [eos or 0] * (n - len(new)), total / max(1, len(new)) ** penalty)
                    for total, new, _ in beams
                ]
            )
    net.train(was)
    return torch.tensor([[t for t, _ in r] for r in results]), torch.tensor([[s for _, s in r] for r in results])
