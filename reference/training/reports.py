"""The report of each kind of run."""

from __future__ import annotations

from conformkit.reference.training.encoders.digits import DigitsSession
from conformkit.reference.training.encoders.masked import MaskedSession
from conformkit.reference.training.encoders.report import write_encoder_report
from conformkit.reference.training.pairs.report import write_pairs_report
from conformkit.reference.training.pairs.session import PairsSession
from conformkit.reference.training.report import write_report as write_text_report
from conformkit.reference.training.sessions import RunSession

__all__ = ["write_report"]


def write_report(session: RunSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    if isinstance(session, PairsSession):
        return write_pairs_report(session, pictures=pictures)
    if isinstance(session, MaskedSession | DigitsSession):
        return write_encoder_report(session, pictures=pictures)
    return write_text_report(session, pictures=pictures)
