"""What PyTorch has: its own loss, padded sequences with both marks that are cut into two, masks in a dictionary."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def create_padding_mask(tokens, pad_idx=0):
    return tokens.ne(pad_idx)[:, None, None]


def create_causal_mask(size, device=None):
    return torch.ones(1, size, size, device=device).tril()


def create_masks(src, tgt, pad_token_id=0):
    tgt_mask = create_padding_mask(tgt, pad_token_id) & create_causal_mask(tgt.size(1)).bool()[None]
    src_mask = create_padding_mask(src, pad_token_id)
    return {"src_mask": src_mask, "tgt_mask": tgt_mask, "memory_mask": src_mask}


def shift_tokens(input_ids, decoder_start_token_id):
    shifted = torch.empty_like(input_ids)
    shifted[:, 1:] = input_ids[:, :-1]
    shifted[:, 0] = decoder_start_token_id
    return shifted


def collate(examples, pad_idx, bos_idx, eos_idx):
    def framed(ids):
        return torch.tensor([bos_idx, *torch.as_tensor(ids).tolist(), eos_idx])

    sources = pad_sequence([torch.as_tensor(s).long() for s, _ in examples], batch_first=True, padding_value=pad_idx)
    targets = pad_sequence([framed(t) for _, t in examples], batch_first=True, padding_value=pad_idx)
    return {"src": sources, "tgt_in": targets[:, :-1], "tgt_out": targets[:, 1:], "src_mask": sources.ne(pad_idx)}


class LabelSmoothingLoss(nn.CrossEntropyLoss):
    def __init__(self, smoothing=0.1, ignore_index=-100):
        super().__init__(label_smoothing=smoothing, ignore_index=ignore_index)

    def forward(self, logits, target):
        return super().forward(logits.flatten(0, -2), target.flatten())


def mask_tokens(inputs, mask_id, vocab_size, special_tokens_mask_ids, mlm_probability=0.15):
    inputs, labels = inputs.clone(), inputs.clone()
    probability = torch.full(labels.shape, mlm_probability)
    special = torch.isin(labels, torch.tensor(special_tokens_mask_ids))
    probability.masked_fill_(special, value=0.0)
    chosen = torch.bernoulli(probability).bool()
    labels[~chosen] = -100
    hidden = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen
    inputs[hidden] = mask_id
    other = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & chosen & ~hidden
    inputs[other] = torch.randint(vocab_size, labels.shape)[other]
    return inputs, labels
