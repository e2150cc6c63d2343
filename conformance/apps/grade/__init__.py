"""Grading: many untrusted submissions, judged by one policy and scored; see docs/grading.md."""
