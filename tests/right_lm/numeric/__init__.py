"""A model in einsum, and around it NumPy: the loss, its gradient by hand, AdamW on float64 moments, sampling."""

from .net import Net
from .numeric import *

__all__ = ["Net"]
