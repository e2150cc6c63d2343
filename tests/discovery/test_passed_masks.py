"""What code means by a mask that it passes, seen from how it makes the mask."""

import pytest

from conformkit.conformance.discovery.passed_masks import shows_words

MADE = {
    "ids-that-are-no-padding": ("model(ids, attention_mask=(ids != PAD).long())", True),
    "by-a-method": ("mask = ids.ne(tokenizer.pad_id)\nmodel(ids, attention_mask=mask)", True),
    "by-its-own-name": ("attention_mask = ids > 0\nmodel(ids, kinds, attention_mask)", True),
    "row-by-row": ("att.append([1] * len(row) + [0] * pad)\nmodel(ids, attention_mask=torch.tensor(att))", True),
    "rows-of-a-name": ("att.append([1] * len(row) + [0] * pad)\nmodel(ids, attention_mask=att)", True),
    "padded-on-the-left": ("att.append([0] * n_pad + [1] * n)\nmodel(ids, attention_mask=att)", True),
    "padding-is-1": ("model(ids, attention_mask=ids == PAD)", False),
    "rows-in-which-padding-is-1": ("att.append([0] * len(row) + [1] * pad)\nmodel(ids, attention_mask=att)", False),
    "both": ("model(ids, attention_mask=ids != 0)\nmodel(ids, attention_mask=ids == 0)", False),
    "its-use": ("scores = scores.masked_fill(attention_mask == 0, -1e9)", False),
    "turned-by-the-model": ("attention_mask = attention_mask == 0", False),
    "turned-when-passed": ("mask = ids != PAD\nmodel(ids, attention_mask=~mask)", False),
    "one-less-it": ("attention_mask = (ids > 0).float()\nmodel(ids, kinds, 1.0 - attention_mask)", False),
    "its-zeros": ("mask = ids != PAD\nmodel(ids, attention_mask=(mask == 0))", False),
    "by-a-function": ("mask = ids.ne(0)\nmodel(ids, attention_mask=torch.logical_not(mask))", False),
    "another-is-turned": ("m = ids != PAD\nmodel(ids, attention_mask=m)\nshown = ~causal", True),
    "another-mask": ("model(ids, attention_mask=m, tgt_mask=ids != 0)", False),
    "all-ones": ("model(ids, attention_mask=torch.ones_like(ids))", False),
}  # fmt: skip


@pytest.mark.parametrize(("code", "shows"), MADE.values(), ids=MADE)
def test_what_is_1_in_a_mask_is_read_off_how_it_is_made(tmp_path, code, shows):
    """Catches a mask used the wrong way round that passes, and right code of the other convention that is red."""
    (tmp_path / "train.py").write_text(code)
    assert shows_words(tmp_path / "train.py", "attention_mask") == shows


def test_code_that_is_not_there_says_nothing():
    assert not shows_words(None, "attention_mask")
