"""One call of a component, followed step by step: what each number is, told by the numbers alone.

A record only proposes: what is read from it is used after the definition has given the same numbers for other weights,
inputs and sizes. Nothing in it can make a verdict better.
"""
