import torch


def choose(logits, temperature, top_k, top_p):
    if temperature == 0:
        return torch.argmax(logits, -1, True)
    rows = []
    for row in logits / temperature:
        values, ids = row.sort(descending=True)
        if top_k is not None:
            values, ids = values[:top_k], ids[:top_k]
        p = values.softmax(0)
        if top_p is not None:
            n = int((p.cumsum(0) < top_p).sum()) + 1
            p, ids = p[:n], ids[:n]
        rows.append(ids[torch.multinomial(p, 1)])
    return torch.stack(rows)
