"""What the sessions of both encoders share: what they keep of who looks at whom while they train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from conformkit.reference.training import history, metrics
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.pairs.maps import encoder_attention_maps
from conformkit.reference.training.run import Run

__all__ = ["EncoderSession"]


@dataclass(frozen=True)
class EncoderSession(ABC):
    """A run and its folder."""

    run: Run
    folder: RunFolder

    floor = None
    """The least possible loss is not known."""

    @property
    def best(self) -> metrics.MetricRecord:
        """What the best evaluation measured."""
        return metrics.best_evaluation(metrics.read_lines(self.folder.metrics))

    @property
    @abstractmethod
    def shown(self) -> tuple[Tensor, ...]:
        """What the model is called with when its attention is drawn, one input."""

    def sample_best(self) -> None:  # noqa: B027 - nothing is what every encoder does here
        """Nothing more: the report guesses with the best model."""

    def looked(self, run: Run) -> None:
        """Keep who looks at whom in what is shown."""
        history.keep(self.folder, run.step, [weights for _, weights in encoder_attention_maps(run.model, *self.shown)])
