"""One model with the same weights on every way through the code: padded, in pieces, packed, with its loss."""
