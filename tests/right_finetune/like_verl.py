"""Losses as verl computes them: a mask of the response, advantages of each id, groups in a loop."""

import torch


def masked_mean(values, mask):
    return (values * mask).sum() / (mask.sum() + 1e-8)


def answer_loss(logits, labels, mask):
    loss_mask = mask[:, 1:].float()
    losses = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1).long(), reduction="none"
    ).view(loss_mask.shape)
    return masked_mean(losses, loss_mask)


def sequence_log_probs(logits, labels, mask):
    chosen = logits[:, :-1].gather(-1, labels[:, 1:, None]).squeeze(-1) - logits[:, :-1].logsumexp(-1)
    return chosen.mul(mask[:, 1:]).sum(-1)


def reward_loss(chosen, rejected):
    return -torch.nn.functional.logsigmoid(chosen - rejected).mean()


def group_advantages(rewards):
    scores = rewards.clone()
    for group in range(len(scores)):
        if scores.shape[1] == 1:
            continue
        mean, std = scores[group].mean(), scores[group].std()
        scores[group] = (scores[group] - mean) / (std + 1e-6)
    return scores


def policy_loss(log_probs, old_log_probs, advantages, mask, clip=0.2):
    negative_approx_kl = torch.clamp(log_probs - old_log_probs, min=-20.0, max=20.0)
    ratio = torch.exp(negative_approx_kl)
    assert advantages.shape == log_probs.shape
    losses1 = -advantages * ratio
    losses2 = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    return masked_mean(torch.maximum(losses1, losses2), mask)


def kl_estimate(log_probs, reference_log_probs, kind="low_var_kl"):
    kind = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}.get(kind, kind)
    if kind == "kl":
        return log_probs - reference_log_probs
    if kind == "mse":
        return 0.5 * (log_probs - reference_log_probs).square()
    kl = torch.clamp(reference_log_probs - log_probs, min=-20, max=20)
    return torch.clamp(torch.exp(kl) - kl - 1, min=-10, max=10)
