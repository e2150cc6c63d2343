"""Heads in front of the batch, and a mask that is repeated behind it."""

import right_code


class CrossAttention(right_code.CrossAttention):
    def attend(self, q, k, v, mask):
        H, B = self.num_heads, len(q)
        q, k, v = (part.transpose(0, 1).flatten(0, 1) for part in (q, k, v))  # (H·B, T, dh)
        if mask is not None:
            mask = mask.expand(B, 1, q.shape[1], k.shape[1]).repeat_interleave(H, dim=0).flatten(0, 1)  # (B·H, Tq, Tk)
        y = self.mixed(q, k, v, mask)
        return y.unflatten(0, (H, B)).transpose(0, 1)

    def mixed(self, q, k, v, mask):
        return super().attend(q, k, v, mask)
