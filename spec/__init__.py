"""The law: clauses as prose, Protocols, oracles in NumPy float64, variants, tolerances. Imports only NumPy."""
