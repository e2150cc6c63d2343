"""A checkpoint into one's own code, proved, and the first mistake of a conversion named."""
