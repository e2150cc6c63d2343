"""Which known mistake is it? Patched references fail the clauses that the implementation failed; their numbers tell.

They come from defects/witness.py.

suspects.py   which defects the verdicts leave possible, without running anything
likeness.py   whether two failures are the same one
parts.py      the first part of a composite that differs, by switching parts on one after another
diagnose.py   the defects that reproduce an implementation's failures, one, or two together
"""
