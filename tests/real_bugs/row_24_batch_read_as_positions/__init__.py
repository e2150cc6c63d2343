"""Batch-first data in attention that expects positions first."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def split(self, rows):
        return super().split(rows.transpose(0, 1))

    def merge(self, heads):
        return super().merge(heads).transpose(0, 1)
