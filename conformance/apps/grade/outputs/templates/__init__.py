"""The pages of a graded class: one for each submission, and an overview."""
