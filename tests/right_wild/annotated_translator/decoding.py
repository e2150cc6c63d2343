import torch

from .utils import subsequent_mask


@torch.no_grad()
def greedy_decode(model, src, src_mask, max_len, start_symbol):
    "Ids (B, max_len), the start symbol first."
    was_training = model.training
    model.eval()
    memory = model.encode(src, src_mask)
    ys = torch.full((src.size(0), 1), start_symbol, dtype=src.dtype, device=src.device)
    for _ in range(max_len - 1):
        out = model.decode(memory, src_mask, ys, subsequent_mask(ys.size(1)).to(src.device))
        next_word = model.generator(out[:, -1]).argmax(dim=1)
        ys = torch.cat([ys, next_word.unsqueeze(1).to(ys.dtype)], dim=1)
    model.train(was_training)
    return ys


@torch.no_grad()
def beam_decode(model, src, src_mask, max_len, start_symbol, end_symbol, beam=4, alpha=0.6):
    "The best hypothesis for one source (1, S): its ids without the start symbol, and its score."
    was_training = model.training
    model.eval()
    memory = model.encode(src, src_mask)
    hyps, finished = [(0.0, [start_symbol])], []
    for _ in range(max_len - 1):
        candidates = []
        for logp, ids in hyps:
            ys = torch.tensor([ids], device=src.device)
            out = model.decode(memory, src_mask, ys, subsequent_mask(len(ids)).to(src.device))
            scores = model.generator(out[0, -1]).log_softmax(-1)
            top = scores.topk(min(beam, scores.numel()))
            candidates += [(logp + v, ids + [i]) for v, i in zip(top.values.tolist(), top.indices.tolist())]
        candidates.sort(key=lambda c: c[0], reverse=True)
        hyps = []
        for logp, ids in candidates[:beam]:
            if ids[-1] == end_symbol:
                finished.append((logp / (len(ids) - 1) ** alpha, ids))
            else:
                hyps.append((logp, ids))
        if not hyps:
            break
    finished += [(logp / max(len(ids) - 1, 1) ** alpha, ids) for logp, ids in hyps]
    model.train(was_training)
    score, ids = max(finished, key=lambda c: c[0])
    return ids[1:], score
