"""What the sessions of both encoders share: neither keeps more than measurements and guesses while it trains."""

from __future__ import annotations

from dataclasses import dataclass

from conformkit.reference.training import metrics
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.run import Run

__all__ = ["EncoderSession"]


@dataclass(frozen=True)
class EncoderSession:
    """A run and its folder."""

    run: Run
    folder: RunFolder

    floor = None
    """The least possible loss is not known."""

    @property
    def best(self) -> metrics.MetricRecord:
        """What the best evaluation measured."""
        return metrics.best_evaluation(metrics.read_lines(self.folder.metrics))

    def sample_best(self) -> None:
        """Nothing more: the report guesses with the best model."""

    def looked(self, run: Run) -> None:
        """Keep nothing: the report draws the best model's attention."""
