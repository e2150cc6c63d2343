"""A call in evaluation sets the rate to 0 for ever."""

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def forward(self, x):
        if not self.training:
            self.dropout.p = 0.0
        return super().forward(x)
