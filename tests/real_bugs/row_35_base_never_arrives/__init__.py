"""The configuration's base of rotation never reaches the rotation."""

import right_code
from right_code import ModernLM as TinyTransformerLM

__all__ = ["TinyTransformerLM", "convert"]


def convert(theirs):
    return right_code.from_llama(theirs)
