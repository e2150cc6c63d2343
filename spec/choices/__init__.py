"""The legitimate choices, one record each: values, words, how common it is, when it plays no part.

A record stands where the choice is declared, in the field of a class that `variants.Variant` puts together. What
follows from the definitions is not written here: which components a choice reaches, and whether it changes their
parameters, is asked of the oracles and stored (`reach.json`, made by `conformkit.fixtures.choices`).
"""
