"""Angles are kept by length, and the first position is forgotten."""

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def angles(self, start, rows):
        if not hasattr(self, "kept"):
            self.kept = {}
        if rows.shape[2] not in self.kept:
            self.kept[rows.shape[2]] = super().angles(start, rows)
        return self.kept[rows.shape[2]].to(rows.device)


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock
