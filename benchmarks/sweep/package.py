"""A package around one of transformers' causal language models, as `conform run` takes it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ONLY", "WITHOUT", "write_package"]

ONLY = (
    "LM-CAUSAL", "LM-PREFIX", "LM-BATCH-INDEP", "LM-SHORT", "PATH-MASK", "PATH-PAD", "PATH-POSITIONS", "PATH-CACHE",
    "PATH-LOSS", "PATH-WEIGHTS", "PATH-TRAIN",
)  # fmt: skip
"""What is judged: clauses that compare a model with itself. Kernels and compiled models take minutes: left out."""
WITHOUT = ("PATH-CACHE-CROP",)
"""The cache of Llama in transformers 5.24 refuses to be cropped to a length, as this clause does."""
_SKIPPED = (
    "ScaledDotProductAttention", "SelfAttention", "MultiHeadAttention", "FeedForward", "PositionalEncoding",
    "TransformerBlock",
)  # fmt: skip
_CODE = '''"""{name} of transformers, small and with random weights."""

import sys

import torch
from transformers import {name}

sys.path.insert(0, {folder!r})
from small import small


class TinyTransformerLM({name}):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        settings_of = {name}.config_class
        defaults = settings_of()
        sizes = dict(vocab_size=vocab_size, num_layers=num_layers, block_size=block_size)
        settings = small(defaults.to_dict(), getattr(defaults, "attribute_map", {{}}), **sizes)
        super().__init__(settings_of(**settings, attn_implementation="eager"))
'''
_TOML = """[implementation]
framework = "torch"
dtypes = ["float32"]

[components.TinyTransformerLM]
construct = ["vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size"]
call = { input_ids = "ids" }
output = "logits"

"""


def write_package(folder: Path, name: str) -> Path:
    """Write a package for a class of transformers; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    code = _CODE.format(name=name, folder=str(Path(__file__).parent))
    (folder / "__init__.py").write_text(code)
    skipped = "\n".join(f"[components.{component}]\nskip = true\n" for component in _SKIPPED)
    (folder / "conform.toml").write_text(_TOML + skipped)
    return folder
