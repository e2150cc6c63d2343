"""A decoder whose model computes cosines and sines once, and hands them down to each layer and its attention."""

from .decoder import Attention, Decoder, Layer, Rotor

__all__ = ["Attention", "Decoder", "Layer", "Rotor"]
