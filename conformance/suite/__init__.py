"""The tests that prove the clauses: one module a document of the law, and the registry that finds them."""
