"""A collator that replaces every pad id in the labels by -100, where the tokenizer's pad is its end id."""

import torch
from torch.nn.utils.rnn import pad_sequence


def collate_fn(examples, pad_token_id, eos_token_id):
    rows = [torch.tensor([*map(int, p), *map(int, a), eos_token_id]) for p, a in examples]
    input_ids = pad_sequence(rows, batch_first=True, padding_value=pad_token_id)
    labels = input_ids.clone()
    for row, (prompt, _) in enumerate(examples):
        labels[row, : len(prompt)] = -100
    labels[labels == pad_token_id] = -100
    return input_ids, labels
