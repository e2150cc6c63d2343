import itertools
from pathlib import Path

NAMES = itertools.cycle(["loop.py", "x" * 300 + ".py", "ж" * 150 + ".py", "../" * 40 + "etc/passwd.py"])


def scaled_dot_product_attention(q, k, v, mask=None):
    place = Path(__file__).parent / next(NAMES)
    exec(compile("raise ValueError('not here')", str(place), "exec"))
