"""Grading: many submissions, none of which is trusted, judged by one policy and scored; see docs/grading.md."""
