"""Encoders train: BERT on a text with hidden ids, a vision transformer on small images."""
