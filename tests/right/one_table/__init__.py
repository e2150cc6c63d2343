"""Words and positions in one table, keys that are always kept, and ids that an object picks."""

from .net import Decoder
from .pick import Picker, prolong

__all__ = ["Decoder", "Picker", "prolong"]
