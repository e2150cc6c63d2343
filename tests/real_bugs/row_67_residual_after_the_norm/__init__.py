"""The residual starts after the norm."""

import right_code


class TransformerBlock(right_code.TransformerBlock):
    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attn(x)
        x = self.norm2(x)
        return x + self.ffn(x)
