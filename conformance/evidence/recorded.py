"""A model as the framework's compiler and exporter make it, where they can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.assertions.checks import NotApplicable, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.evidence.logits import draw_ids
from conformkit.conformance.evidence.padded_texts import batch, check_same_logits, check_texts_alone, padded
from conformkit.conformance.subject.call_path import Path
from conformkit.spec.arrays import Array

__all__ = ["Recorded", "check_padded", "check_same", "recorded"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model that was compiled or exported, and how it is called there."""

    plain: Path
    made: Path
    closed: str
    """Why it takes no other extents than those that it was exported with; empty if it does."""
    way: str

    def __call__(self, ids: Array, **further: Any) -> Array:
        """Return its logits. Raises NotApplicable where it cannot be recorded for this call."""
        with _where_possible():
            return self.made(ids, **further)

    def graphs(self) -> int:
        """How many graphs were recorded so far."""
        return int(self.made.told("graphs"))


def recorded(path: Path, way: str, ids: Array, **further: Any) -> Recorded:
    """Compile a model, or export it for arguments like these. Raises NotApplicable where that is not possible."""
    if not path.instance.subject.link.is_torch:
        raise NotApplicable("the framework neither compiles nor exports modules")
    with _where_possible():
        return Recorded(path, *path.recorded(way, ids, **further), way)


def check_same(model: Recorded, draw: Draw, tokens: int) -> None:
    """Check that it gives the logits of the plain model for a text of this length."""
    ids = draw_ids(model.plain.instance, draw, batch(model.plain), tokens)
    under(f"{model.way}, {tokens} ids")
    check_same_logits("the logits", model(ids), model.plain(ids), model.plain.instance)


def check_padded(path: Path, draw: Draw, way: str) -> None:
    """Check that padding on either side is hidden in what is made of a model."""
    model: Recorded | None = None
    for side in ("left", "right"):
        texts = padded(path, draw, [7, 4, 5][: batch(path)], side=side)
        further = {"mask": texts.real, "positions": texts.positions}
        model = model or recorded(path, way, texts.ids, **further)
        logits = model(texts.ids, **further)
        check_texts_alone(path, texts, logits, f"{way}, padding on the {side}")


@contextmanager
def _where_possible() -> Iterator[None]:
    """Raise NotApplicable for what torch cannot record, or not in time: no result is wrong."""
    try:
        yield
    except ImplementationFailure as failure:
        if failure.kind != "unsupported":
            raise
        raise NotApplicable(failure.message) from None
    except WorkerLost as lost:
        if lost.kind != "timeout":
            raise
        raise NotApplicable(f"it is not recorded in time: {lost.detail}") from None
