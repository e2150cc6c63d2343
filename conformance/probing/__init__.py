"""Which parameter is which, and how accurately a component computes: found by trying."""
