"""A model whose scripts call one half after the other gets a call; nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from conformkit.conformance.driver.worker.exports import describe
from conformkit.conformance.driver.worker.own_calls import ready


class Model:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    def encode(self, src: str, src_mask: str) -> str:
        return f"encoded {src} {src_mask}"

    def decode(self, encoder_output: str, src_mask: str, tgt: str, tgt_mask: str = "open") -> tuple[str, ...]:
        return encoder_output, src_mask, tgt, tgt_mask


class Inheriting(Model):
    pass


class Tokenizer:
    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int], skip: bool = False) -> str: ...


class Autoencoder:
    def encode(self, x: str) -> str: ...

    def decode(self, z: str) -> str: ...


class Whole(Model):
    def forward(self, src: str) -> str:
        return src


class Open:
    def encode(self, *args: str) -> str: ...

    def decode(self, memory: str, tgt: str) -> str: ...


def described(value: type) -> dict[str, Any]:
    return describe(value, "m:M", lambda _: None)


@pytest.mark.parametrize("kind", [Model, Inheriting])
def test_the_call_takes_what_both_take_and_hands_the_memory_on(kind: type[Model]) -> None:
    """Would break if the memory were asked for, a mask came before the ids, or one half did not get its own."""
    found = described(kind)
    assert found["memory"] == "encoder_output"
    assert [(p["name"], p["required"]) for p in found["call"]] == [
        ("src", True), ("tgt", True), ("src_mask", True), ("tgt_mask", False),
    ]  # fmt: skip
    model: Any = ready(kind())
    assert model.forward("a", "b", "m") == ("encoded a m", "m", "b", "open")
    assert model.forward("a", tgt="b", src_mask="m", tgt_mask="t") == ("encoded a m", "m", "b", "t")


@pytest.mark.parametrize("kind", [Tokenizer, Autoencoder, Open])
def test_what_only_looks_like_two_halves_gets_no_call(kind: type) -> None:
    found = described(kind)
    assert (found["memory"], found["call"]) == ("", None)


def test_a_call_of_its_own_stays() -> None:
    assert not described(Whole)["memory"]
    assert [p["name"] for p in described(Whole)["call"]] == ["src"]
