"""Right code that packages next to it change in one place: attention with the arguments of torch's function."""

import torch


class Attention:
    def __call__(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if enable_gqa:
            key, value = (self.repeated(part, query.shape[-3] // part.shape[-3]) for part in (key, value))
        scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            scores = scores.masked_fill(~self.earlier(*scores.shape[-2:]), float("-inf"))
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        weights = torch.nan_to_num(scores.softmax(-1))
        return torch.dropout(weights, dropout_p, train=dropout_p > 0.0) @ value

    def repeated(self, part, times):
        return part.repeat_interleave(times, dim=-3)

    def earlier(self, queries, keys):
        """(Tq, Tk): the last query sees all keys."""
        return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
