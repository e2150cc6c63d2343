"""Weights of norms get their 1 in the conversion, and in the code again."""

import right_code


class Norm(right_code.RMSNorm):
    def forward(self, x):
        return x * (x.pow(2).mean(-1, keepdim=True) + self.eps).rsqrt() * (1 + self.weight)


class TransformerBlock(right_code.ModernBlock):
    norm = Norm


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock


def convert(theirs):
    return right_code.from_llama(theirs)
