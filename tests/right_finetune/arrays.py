"""NumPy and plain Python."""

import math

import numpy as np


def collate_answers(pairs, pad_id, eos_id):
    width = max(len(p) + len(a) for p, a in pairs) + 1
    ids, labels = np.full((len(pairs), width), pad_id), np.full((len(pairs), width), -100)
    for row, (prompt, answer) in enumerate(pairs):
        text = [*prompt, *answer, eos_id]
        ids[row, : len(text)] = text
        labels[row, len(prompt) : len(text)] = text[len(prompt) :]
    return ids, labels


def _log_softmax(z):
    top = z.max(-1, keepdims=True)
    return z - top - np.log(np.exp(z - top).sum(-1, keepdims=True))


def sequence_log_probs(logits, labels):
    logs = _log_softmax(np.asarray(logits))
    return [sum(logs[b, t - 1, y] for t, y in enumerate(row) if t and y != -100) for b, row in enumerate(labels)]


def answer_loss(logits, labels):
    labels = np.asarray(labels)
    return -sum(sequence_log_probs(logits, labels)) / (labels[:, 1:] != -100).sum()


def reward_loss(chosen, rejected):
    return float(np.mean(np.logaddexp(0, np.asarray(rejected) - np.asarray(chosen))))


def dpo_loss(policy_chosen, policy_rejected, reference_chosen, reference_rejected, beta=0.1):
    h = np.asarray(policy_chosen) - policy_rejected - (np.asarray(reference_chosen) - reference_rejected)
    return np.logaddexp(0, -beta * h).mean()


def group_advantages(rewards, group_size):
    out = []
    for start in range(0, len(rewards), group_size):
        group = [float(r) for r in rewards[start : start + group_size]]
        mean = sum(group) / len(group)
        spread = math.sqrt(sum((r - mean) ** 2 for r in group) / len(group))
        out += [(r - mean) / (spread + 1e-8) for r in group]
    return out


def policy_loss(log_probs, old_log_probs, advantages, mask, clip=0.2):
    ratio = np.exp(np.asarray(log_probs) - old_log_probs)
    advantages = np.asarray(advantages).reshape(len(ratio), -1)
    gained = np.minimum(ratio * advantages, np.clip(ratio, 1 - clip, 1 + clip) * advantages)
    return -np.sum(gained * mask) / np.sum(mask)


def kl_estimate(log_probs, reference_log_probs):
    return np.asarray(log_probs) - np.asarray(reference_log_probs)
