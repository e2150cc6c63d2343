"""Each word and each place has a parameter of its own, so that words can be added; attention is one map a head."""

from .words import Glance, Reader, Round

__all__ = ["Glance", "Reader", "Round"]
