"""Drafts for an encoder alone, and for images: right code whose names are its own conforms as drafted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import adapt
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
