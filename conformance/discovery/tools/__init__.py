"""Functions and classes besides the model, found by what they are called, take and do."""
