"""Which known mistake is it? Judge patched references on the clauses that failed, and compare the numbers.

witness.py    the reference with defects, judged like an implementation
suspects.py   which defects the verdicts leave possible; runs nothing
similarity.py how similar two failures are
parts.py      the first part of a composite that differs, found by switching on parts one after another
diagnose.py   the defects, one or two together, that reproduce an implementation's failures
"""
