"""Other names, other orders, constants, and a model whose keys and values are cached by default."""
