"""A package of typed stubs to fill in, generated from the contract."""
