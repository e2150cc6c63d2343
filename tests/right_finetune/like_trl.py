"""Losses as trl's trainers compute them: labels of -100, a loss for each pair with rewards beside, advantages flat."""

import torch
import torch.nn.functional as F


def collate_answers(pairs, pad_id, eos_id):
    batch = [list(map(int, p)) + list(map(int, a)) + [eos_id] for p, a in pairs]
    targets = [[-100] * len(p) + list(map(int, a)) + [eos_id] for p, a in pairs]
    longest = max(map(len, batch))
    ids = torch.tensor([[pad_id] * (longest - len(row)) + row for row in batch])  # on the left
    labels = torch.tensor([[-100] * (longest - len(row)) + row for row in targets])
    return {"input_ids": ids, "labels": labels}


def answer_loss(logits, labels):
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
    return F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1), ignore_index=-100)


def sequence_log_probs(logits, labels, average_log_prob=False):
    labels = labels[:, 1:].clone()
    logits = logits[:, :-1, :]
    loss_mask = labels != -100
    labels[labels == -100] = 0
    per_token = torch.gather(logits.log_softmax(-1), dim=2, index=labels.unsqueeze(2)).squeeze(2)
    if average_log_prob:
        return (per_token * loss_mask).sum(-1) / loss_mask.sum(-1)
    return (per_token * loss_mask).sum(-1)


def dpo_loss(policy_chosen, policy_rejected, reference_chosen, reference_rejected, beta=0.1, label_smoothing=0):
    pi_logratios = policy_chosen - policy_rejected
    ref_logratios = reference_chosen - reference_rejected
    logits = pi_logratios - ref_logratios
    return -F.logsigmoid(beta * logits) * (1 - label_smoothing) - F.logsigmoid(-beta * logits) * label_smoothing


def reward_loss(chosen, rejected):
    return F.softplus(rejected - chosen)


def group_advantages(rewards, group_size):
    mean = rewards.view(-1, group_size).mean(dim=1).repeat_interleave(group_size, dim=0)
    std = rewards.view(-1, group_size).std(dim=1).nan_to_num(0.0).repeat_interleave(group_size, dim=0)
    return (rewards - mean) / (std + 1e-4)


def policy_loss(log_probs, old_log_probs, advantages, mask, clip=0.2):
    coef_1 = torch.exp(log_probs - old_log_probs)
    coef_2 = torch.clamp(coef_1, 1 - clip, 1 + clip)
    loss1 = coef_1 * advantages.unsqueeze(1)
    loss2 = coef_2 * advantages.unsqueeze(1)
    per_token = -torch.min(loss1, loss2)
    return ((per_token * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()


def kl_estimate(log_probs, reference_log_probs):
    return torch.exp(reference_log_probs - log_probs) - (reference_log_probs - log_probs) - 1
