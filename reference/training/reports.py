"""The report of each kind of run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformkit.reference.training.encoders.digits import DigitsSession
from conformkit.reference.training.encoders.masked import MaskedSession
from conformkit.reference.training.encoders.report import write_encoder_report
from conformkit.reference.training.pairs.report import write_pairs_report
from conformkit.reference.training.pairs.session import PairsSession
from conformkit.reference.training.report import write_report as write_text_report
from conformkit.reference.training.session import TrainingSession
from conformkit.reference.training.sessions import RunSession

__all__ = ["write_report"]


_REPORTS: Mapping[type[RunSession], Callable[..., str]] = {
    TrainingSession: write_text_report,
    PairsSession: write_pairs_report,
    MaskedSession: write_encoder_report,
    DigitsSession: write_encoder_report,
}


def write_report(session: RunSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    return _REPORTS[type(session)](session, pictures=pictures)
