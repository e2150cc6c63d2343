"""Arrays and lists: 0/1 masks (B, T), batches filled row by row, a loss by log-sum-exp, exact counts of hidden ids."""

import numpy as np


def create_padding_mask(sequence, pad_token_id=0):
    return (np.asarray(sequence) != pad_token_id).astype(np.int32)


def create_causal_mask(n):
    return np.less_equal.outer(np.arange(n), np.arange(n)).T


def create_masks(source, target, pad=0):
    reads = create_padding_mask(target, pad)[:, None, :]
    return create_padding_mask(source, pad), np.logical_and(reads, create_causal_mask(reads.shape[-1]))


def shift_right(target, start_id):
    shifted = np.roll(np.asarray(target), 1, axis=1)
    shifted[:, 0] = start_id
    return shifted


def collate(batch, pad_id, sos_id, eos_id):
    longest = max(len(source) for source, _ in batch), 1 + max(len(target) for _, target in batch)
    src = np.full((len(batch), longest[0]), pad_id, np.int32)
    tgt_in, tgt_out = np.full((2, len(batch), longest[1]), pad_id, np.int32)
    for row, (source, target) in enumerate(batch):
        n = len(target)
        src[row, : len(source)] = source
        tgt_in[row, 0], tgt_in[row, 1 : n + 1] = sos_id, target
        tgt_out[row, :n], tgt_out[row, n] = target, eos_id
    return src, tgt_in, tgt_out


class LabelSmoothingLoss:
    def __init__(self, num_classes, epsilon=0.1, pad_id=-100):
        self.num_classes, self.epsilon, self.pad_id = num_classes, epsilon, pad_id

    def __call__(self, scores, labels):
        scores, labels = np.asarray(scores, np.float64), np.asarray(labels)
        keep = labels != self.pad_id
        scores, labels = scores[keep], labels[keep]
        top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        total = top[:, 0] + np.log(np.exp(scores - top).sum(axis=-1))
        own = scores[np.arange(len(labels)), labels]
        blended = (1.0 - self.epsilon) * own + self.epsilon / self.num_classes * scores.sum(axis=-1)
        return float((total - blended).sum() / max(len(labels), 1))


def mask_tokens(tokens, mask_token_id, vocab_size, special_tokens, mlm_probability=0.15):
    tokens = np.asarray(tokens)
    inputs, labels = tokens.copy(), np.full_like(tokens, -100)
    for row, line in enumerate(tokens):
        words = np.flatnonzero(~np.isin(line, special_tokens))
        count = round(mlm_probability * len(words))
        for place in np.random.permutation(words)[:count]:
            labels[row, place] = line[place]
            draw = np.random.random()
            if draw < 0.8:
                inputs[row, place] = mask_token_id
            elif draw < 0.9:
                inputs[row, place] = np.random.randint(vocab_size)
    return inputs, labels
