"""Drafts for an encoder alone, and for images: right code whose names are its own conforms as drafted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import adapt, draft
from conformkit.conformance.engine.request import RunRequest

RIGHT = Path(__file__).parents[2]


def check_draft(folder: Path, profile: str, name: str, declared: str) -> None:
    shutil.copytree(RIGHT / f"right_{profile}" / name, folder / name, ignore=shutil.ignore_patterns("conform.toml"))
    found = adapt(RunRequest(str(folder / name), profile=profile), {})
    assert found.conforms
    assert declared in found.draft.text()


def test_a_draft_names_the_parts_and_the_choices(tmp_path: Path) -> None:
    """Would break if names of ViT's sizes were unknown, or its choices compared with those of core."""
    check_draft(tmp_path, "vit", "rearranged", 'pooling = "mean"')


@pytest.mark.full(guard="test_a_draft_names_the_parts_and_the_choices")
def test_a_draft_of_a_bert_names_its_parts(tmp_path: Path) -> None:
    check_draft(tmp_path, "encoder", "pairs", 'path = "pairs.bert:BERTLM"')


@pytest.mark.full(guard="test_a_draft_names_the_parts_and_the_choices")
def test_a_mask_used_the_other_way_than_it_is_made_is_a_mistake(tmp_path: Path) -> None:
    """Catches a BERT that hides the words, which its own code marks by 1, as one of another convention."""
    code = (RIGHT / "right_encoder" / "beside_pooler" / "__init__.py").read_text()
    used = "(1.0 - attention_mask[:, None, None, :].to(scores.dtype)) * torch.finfo(scores.dtype).min"
    assert used in code
    turned = code.replace(used, "attention_mask[:, None, None, :].to(scores.dtype) * -10000.0")
    folder = tmp_path / "turned"
    folder.mkdir()
    (folder / "__init__.py").write_text(turned.replace("attention_mask = torch.ones_like(input_ids)", "pass"))
    (folder / "train.py").write_text("def step(model, ids):\n    return model(ids, attention_mask=(ids != 0).long())\n")
    found = draft(RunRequest(str(folder), profile="encoder"), {})
    assert any("the code that passes it gives 1 for words" in doubt for doubt in found.doubts())
    assert all("hide" not in str(proposal.table.get("masks")) for proposal in found.proposals)
