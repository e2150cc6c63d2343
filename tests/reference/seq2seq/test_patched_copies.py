"""A copy of the reference with a mistake in the encoder-decoder has that mistake, its own modules and its variant."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.patching import PatchError, write_reference
from conformkit.reference import Transformer
from conformkit.spec.variants import CANONICAL

SWAPPED = Patch(
    "seq2seq/cross_attention.py",
    find="k = self._split(self.k(key), self.kv_heads)",
    replace="k = self._split(self.k(value), self.kv_heads)",
)
LEARNED = CANONICAL.but(positions="learned", shared_embeddings=True)


FEWER = CANONICAL.but(kv_heads="max(1, num_heads // 3) if num_heads > 2 else num_heads")


@pytest.fixture(params=[LEARNED])
def package(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    write_reference(tmp_path / "copied_reference", (SWAPPED,), request.param)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "copied_reference"
    for name in [name for name in sys.modules if name.split(".")[0] == "copied_reference"]:
        del sys.modules[name]


def test_a_copy_has_the_mistake_and_its_own_modules(package: str) -> None:
    copied = importlib.import_module(package)
    attention = copied.CrossAttention(8, 2)
    query, key, value = torch.randn(3, 1, 4, 8)
    assert torch.equal(attention(query, key, value), attention(query, value, value))
    assert type(attention).__mro__[1].__module__ == f"{package}.multi_head_attention"


def test_a_copy_builds_its_variant(package: str) -> None:
    sizes = (13, 13, 8, 2, 1, 1, 12, 9)
    copied = importlib.import_module(package).Transformer(*sizes)
    assert set(copied.state_dict()) == set(Transformer(*sizes, variant=LEARNED).state_dict())
    assert copied.tgt_embedding.weight is copied.src_embedding.weight


def test_a_patch_of_no_file_of_the_reference_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match=r"no file cross_attention\.py, only"):
        write_reference(tmp_path / "copied", (Patch("cross_attention.py", "a", "b"),))


@pytest.mark.parametrize("package", [FEWER], indirect=True, ids=["any-expression"])
def test_a_copy_has_as_many_heads_as_any_expression_of_a_declaration_says(package: str) -> None:
    copied = importlib.import_module(package)
    assert [copied.MultiHeadAttention(12, heads).kv_heads for heads in (1, 2, 3, 6)] == [1, 2, 1, 2]
    with pytest.raises(ValueError, match=r"1\.33"):
        copied.MultiHeadAttention(12, 4)
