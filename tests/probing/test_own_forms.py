"""An encoder-decoder whose call takes no masks, and whose `encode` takes those that the call makes."""

import textwrap

import pytest

from conformkit.conformance.binding.masks import MaskForm
from conformkit.conformance.discovery.bench import Bench
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.probing.mask_trial import own_forms

CODE = """
    import numpy as np


    class Transformer:
        def __init__(self, src_vocab_size, tgt_vocab_size, d_model):
            self.words = np.random.randn(src_vocab_size, d_model)
            self.head = np.random.randn(d_model, tgt_vocab_size)

        def encode(self, src, src_padding_mask):
            x = self.words[src]
            seen = SEEN
            return x + (x * seen).sum(1, keepdims=True)

        def __call__(self, src, tgt):
            memory = self.encode(src, MADE)
            return np.repeat(memory.mean(1, keepdims=True), tgt.shape[1], 1) @ self.head
"""
TABLE = {
    "path": "mt:Transformer", "call": ["src", "tgt"],
    "construct": {"src_vocab_size": "src_vocab_size", "tgt_vocab_size": "tgt_vocab_size", "d_model": "d_model"},
}  # fmt: skip
USUAL = MaskForm()


@pytest.mark.parametrize(
    ("seen", "made", "form"),
    [
        ("~src_padding_mask[:, :, None]", "src == 0", MaskForm(true="hide", shape="B T")),
        ("src_padding_mask[:, 0, 0, :, None]", "(src != 0)[:, None, None]", USUAL),
        ("src_padding_mask[:, 0, :, None]", "(src != 0)[:, None]", MaskForm(shape="B 1 T")),
        ("1 + 0 * src_padding_mask.reshape(len(src), -1, 1)", "src == 0", USUAL),
    ],
    ids=["pads-of-torch", "of-the-contract", "without-heads", "hides-nothing"],
)
def test_the_form_that_hides_is_the_one_that_encode_takes(tmp_path, seen, made, form):
    """Catches a right `encode` that is an error for masks in the contract's form, and one that needs no effect."""
    (tmp_path / "mt.py").write_text(textwrap.dedent(CODE).replace("SEEN", seen).replace("MADE", made))
    with imported(RunRequest(str(tmp_path / "mt.py"))) as (implementation, _):
        found = own_forms(Bench(implementation).subject("Transformer", TABLE).build())
    assert found["src_mask"] == found["memory_mask"] == form
