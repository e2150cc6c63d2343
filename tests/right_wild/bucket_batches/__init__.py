"""From sentence pairs to padded batches of similar length, and the metrics of a translation model."""

import math
import random
from collections import Counter
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .layers import CrossAttention, DecoderLayer, EncoderLayer
from .model import Transformer

PAD, BOS, EOS, UNK = 0, 1, 2, 3


class Vocab:
    def __init__(self, sentences, min_count=1):
        counts = Counter(word for sentence in sentences for word in sentence.split())
        words = sorted(word for word, n in counts.items() if n >= min_count)
        self.itos = ["<pad>", "<bos>", "<eos>", "<unk>", *words]
        self.stoi = {word: i for i, word in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, sentence):
        return [self.stoi.get(word, UNK) for word in sentence.split()]

    def decode(self, ids):
        words = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i not in (PAD, BOS):
                words.append(self.itos[i])
        return " ".join(words)


@dataclass
class Seq2SeqBatch:
    src: torch.Tensor
    tgt_in: torch.Tensor
    tgt_out: torch.Tensor

    @property
    def num_tokens(self):
        return int((self.tgt_out != PAD).sum())


def pad_rows(rows, pad_id):
    out = torch.full((len(rows), max(len(row) for row in rows)), pad_id, dtype=torch.long)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return out


def collate(pairs, pad_id=PAD, bos_id=BOS, eos_id=EOS):
    if not pairs:
        raise ValueError("an empty batch")
    src = pad_rows([list(s) for s, _ in pairs], pad_id)
    tgt = pad_rows([[bos_id, *t, eos_id] for _, t in pairs], pad_id)
    tgt_in = tgt[:, :-1].clone()
    for row, (_, t) in enumerate(pairs):
        tgt_in[row, len(t) + 1 :] = pad_id  # shorter rows must not read their own end id
    return src, tgt_in, tgt[:, 1:].clone()


def bucket_batches(pairs, max_tokens, seed=0):
    """Batches whose padded size stays at or below max_tokens on either side; a pair that is longer gets a batch alone."""
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), len(pairs[i][1])))
    groups, group, longest = [], [], 0
    for i in order:
        size = max(len(pairs[i][0]), len(pairs[i][1]) + 1)
        if group and max(longest, size) * (len(group) + 1) > max_tokens:
            groups.append(group)
            group, longest = [], 0
        group.append(i)
        longest = max(longest, size)
    if group:
        groups.append(group)
    random.Random(seed).shuffle(groups)
    for group in groups:
        yield Seq2SeqBatch(*collate([pairs[i] for i in group]))


def smoothed_nll(logits, target, epsilon=0.1, pad_id=PAD):
    """Sums over real tokens: the smoothed loss, which is learned from, and the plain one, which is reported."""
    log_p = F.log_softmax(logits, dim=-1)
    real = target != pad_id
    nll = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    uniform = -log_p.mean(dim=-1)
    smooth = (1 - epsilon) * nll + epsilon * uniform
    return (smooth * real).sum(), (nll * real).sum()


def train_step(model, optimizer, batch, epsilon=0.1, max_norm=1.0):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss, nll = smoothed_nll(model(batch.src, batch.tgt_in), batch.tgt_out, epsilon)
    (loss / max(batch.num_tokens, 1)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return nll.item() / max(batch.num_tokens, 1)


@torch.no_grad()
def perplexity_on(model, batches):
    training = model.training
    model.eval()
    nll = tokens = 0
    for batch in batches:
        nll += smoothed_nll(model(batch.src, batch.tgt_in), batch.tgt_out, 0.0)[1].item()
        tokens += batch.num_tokens
    model.train(training)
    return math.exp(nll / tokens)


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def corpus_bleu(hypotheses, references, max_n=4):
    """BLEU in [0, 1] with one reference each: clipped precisions pooled over the corpus, times the brevity penalty."""
    hits, totals = [0] * max_n, [0] * max_n
    hyp_len = ref_len = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        h, r = hypothesis.split(), reference.split()
        hyp_len += len(h)
        ref_len += len(r)
        for n in range(1, max_n + 1):
            found, wanted = ngrams(h, n), ngrams(r, n)
            hits[n - 1] += sum((found & wanted).values())
            totals[n - 1] += sum(found.values())
    if min(hits) == 0:
        return 0.0
    precision = math.exp(sum(math.log(a / b) for a, b in zip(hits, totals)) / max_n)
    brevity = 1.0 if hyp_len > ref_len else math.exp(1 - ref_len / hyp_len)
    return brevity * precision
