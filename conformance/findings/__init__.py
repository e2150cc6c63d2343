"""What a failed check found, as data: above it everything compares fields, and only what prints makes words of them."""
