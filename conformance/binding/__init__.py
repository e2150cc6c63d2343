"""How the contract's names, arguments, weights and conventions are found in an implementation."""
