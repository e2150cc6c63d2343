"""A loss of responses whose mask is cut like the logits: the first id of an answer is never learned."""

import torch.nn.functional as F


def compute_sft_loss(logits, input_ids, loss_mask):
    shift_logits, shift_labels = logits[:, :-1].contiguous(), input_ids[:, 1:].contiguous()
    loss_mask = loss_mask[:, :-1].reshape(-1)
    loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1), reduction="none")
    return (loss * loss_mask).sum() / loss_mask.sum()
