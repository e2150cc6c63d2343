import torch


class Picker:
    def __init__(self, heat=1.0, best=None):
        self.heat, self.best = heat, best

    def __call__(self, logits):
        if self.heat == 0:
            return logits.argmax(-1, keepdim=True)
        logits = logits / self.heat
        if self.best is not None:
            least = logits.topk(min(self.best, logits.shape[-1]), -1)[0][:, -1:]
            logits = logits.masked_fill(logits < least, float("-inf"))
        return torch.multinomial(logits.softmax(-1), 1)


@torch.no_grad()
def prolong(decoder, ids, more, pick):
    past, new = None, ids
    for _ in range(more):
        logits, past = decoder(new, past)
        new = pick(logits[:, -1])
        ids = torch.cat([ids, new], 1)
    return ids
