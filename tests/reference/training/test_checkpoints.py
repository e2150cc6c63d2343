"""A checkpoint restores exactly what was saved, and is refused if it is incomplete."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from conformkit.reference import AdamW, TinyTransformerLM, load_checkpoint, save_checkpoint, train_step
from conformkit.reference.checkpoints import read_checkpoint, replace_file
from conformkit.reference.errors import CheckpointError
from conformkit.spec.variants import CANONICAL, FAMOUS


def lm(width: int = 8, variant: str = "gpt2") -> TinyTransformerLM:
    torch.manual_seed(6)
    return TinyTransformerLM(13, width, 2, 2, 16, 6, variant=FAMOUS.get(variant, CANONICAL))


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    source = torch.Generator().manual_seed(1)
    return [(torch.randint(13, (4, 6), generator=source),) * 2 for _ in range(count)]


@pytest.mark.parametrize("kind", [AdamW, torch.optim.AdamW], ids=["ours", "torch"])
@pytest.mark.parametrize("variant", ["gpt2", "canonical"])
def test_training_continues_exactly(tmp_path: Path, kind: type, variant: str) -> None:
    model = lm(variant=variant)
    optimizer = kind(model.parameters(), lr=0.01)
    for x, y in batches(6)[:3]:
        train_step(model, optimizer, x, y)
    save_checkpoint(tmp_path / "a.safetensors", model, optimizer, 3, {"note": [1, "é"]})
    other = lm(variant=variant)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    resumed = kind(other.parameters(), lr=0.5)
    assert load_checkpoint(tmp_path / "a.safetensors", other, resumed) == 3
    for x, y in batches(6)[3:]:
        assert train_step(model, optimizer, x, y) == train_step(other, resumed, x, y)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    assert read_checkpoint(tmp_path / "a.safetensors").extra == {"note": [1, "é"]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model = lm()
    save_checkpoint(tmp_path / "a.safetensors", model, AdamW(model.parameters()), 3)
    return tmp_path / "a.safetensors"


def cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def other_step(path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b'\\"step\\": 3') == 1
    path.write_bytes(content.replace(b'\\"step\\": 3', b'\\"step\\": 4'))


def renamed(path: Path) -> None:
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    tensors["model.extra"] = tensors.pop("model.head.weight")
    save_file(tensors, path, metadata)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: cut(path, 0.5), lambda path: cut(path, 0.01), lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\x80\x04\x95" * 50), flip, other_step, renamed,
        lambda path: save_file({"a": torch.zeros(2)}, path),
    ],
    ids=["half", "header", "empty", "pickle", "bit", "facts", "names", "foreign"],
)  # fmt: skip
def test_what_is_not_whole_is_refused_and_changes_nothing(saved: Path, damage: object) -> None:
    damage(saved)  # type: ignore[operator]
    model = lm()
    optimizer = AdamW(model.parameters(), lr=0.5)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(CheckpointError, match=r"a\.safetensors is "):
        load_checkpoint(saved, model, optimizer)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_another_models_checkpoint_is_refused_by_name_and_shape(saved: Path) -> None:
    model = lm(width=12)
    with pytest.raises(CheckpointError, match=r"has shape \(16,\d*8\)|has shape \(8"):
        load_checkpoint(saved, model, AdamW(model.parameters()))
    same = lm()
    with pytest.raises(CheckpointError, match="groups of"):
        load_checkpoint(saved, same, AdamW(list(same.parameters())[1:]))


def test_a_missing_file_is_reported_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_checkpoint(tmp_path / "nothing.safetensors")


def test_a_full_disk_leaves_the_old_file_and_no_other(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*a\.safetensors"):
        replace_file(saved, b"new")
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
