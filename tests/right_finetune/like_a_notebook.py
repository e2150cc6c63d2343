"""One cell each, as a tutorial writes them: a row at a time, boolean masks that index, Dr. GRPO without the deviation."""

import torch
from torch.nn.functional import cross_entropy, logsigmoid


def collate_answers(pairs, pad_id, eos_id):
    rows, targets = [], []
    longest = max(len(p) + len(a) for p, a in pairs) + 1
    for prompt, answer in pairs:
        row = torch.cat([torch.as_tensor(prompt), torch.as_tensor(answer), torch.tensor([eos_id])])
        target = row.clone()
        target[: len(prompt)] = -100
        pad = longest - len(row)
        rows.append(torch.nn.functional.pad(row, (0, pad), value=pad_id))
        targets.append(torch.nn.functional.pad(target, (0, pad), value=-100))
    return torch.stack(rows), torch.stack(targets)


def answer_loss(logits, labels, mask):
    shifted = mask[:, 1:].bool()
    return cross_entropy(logits[:, :-1][shifted], labels[:, 1:][shifted])


def sequence_log_probs(logits, labels):
    sums = []
    for row, target in zip(logits, labels):
        keep = target[1:] != -100
        sums.append(-cross_entropy(row[:-1][keep], target[1:][keep], reduction="sum"))
    return torch.stack(sums)


def dpo_loss(policy_chosen, policy_rejected, reference_chosen, reference_rejected, beta=0.1):
    chosen_rewards = beta * (policy_chosen - reference_chosen)
    rejected_rewards = beta * (policy_rejected - reference_rejected)
    return -logsigmoid(chosen_rewards - rejected_rewards).mean()


def group_advantages(rewards, group_size):
    groups = rewards.reshape(-1, group_size)
    return (groups - groups.mean(1, keepdim=True)).flatten()


def policy_loss(log_probs, old_log_probs, advantages, mask, clip=0.2):
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    gain = advantages if advantages.dim() == 2 else advantages.unsqueeze(-1).expand_as(ratio)
    objective = torch.where(
        gain >= 0,
        torch.minimum(ratio, torch.tensor(1 + clip)) * gain,
        torch.maximum(ratio, torch.tensor(1 - clip)) * gain,
    )
    keep = mask.bool()
    return -objective[keep].mean()


def kl_estimate(log_probs, reference_log_probs):
    return 0.5 * (log_probs - reference_log_probs) ** 2
