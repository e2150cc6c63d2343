"""The line of every key of a TOML text."""

from __future__ import annotations

import json
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding.toml_lines import key_lines


def test_the_line_of_every_key_is_known():
    text = (
        "# [fake]\n"
        "a.b = 'x' # c\n"
        '[t."q.r"]\n'
        's = """[not]\n'
        'key = 1 \\""" # no\n'
        '""""\n'
        "l = [1, # ]\n"
        "  { x = 2, y = [\n"
        "   3] },\n"
        "]\n"
        "m = '''\n'''\n"
        "n = {p.q = 1}\r\n"
        "[[u]]\n"
        "v = 1979-05-27T07:32:00Z\n"
        "[[u]]\n"
        "[u.w]\n"
        "z = '#'\n"
    )
    tomllib.loads(text)
    assert key_lines(text) == {
        ("a",): 2, ("a", "b"): 2, ("t",): 3, ("t", "q.r"): 3, ("t", "q.r", "s"): 4, ("t", "q.r", "l"): 7,
        ("t", "q.r", "l", 0): 7, ("t", "q.r", "l", 1): 8, ("t", "q.r", "l", 1, "x"): 8, ("t", "q.r", "l", 1, "y"): 8,
        ("t", "q.r", "l", 1, "y", 0): 9, ("t", "q.r", "m"): 11, ("t", "q.r", "n"): 13, ("t", "q.r", "n", "p"): 13,
        ("t", "q.r", "n", "p", "q"): 13, ("u",): 14, ("u", 0, "v"): 15, ("u", "w"): 17, ("u", "w", "z"): 18,
    }  # fmt: skip


KEYS = st.text(alphabet="ab.'\"\\#=[]{} \né", max_size=4)
VALUES = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), KEYS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def written(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "]"
    return json.dumps(value)


def paths(value, prefix=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*prefix, key)
        yield from paths(inner, (*prefix, key))


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_the_scanner_finds_exactly_the_keys_that_tomllib_finds(document):
    text = "\n".join(f"{json.dumps(key)} = {written(value)}" for key, value in document.items())
    assert tomllib.loads(text) == document
    found = key_lines(text)
    assert set(found) == set(paths(document))
    lines = text.split("\n")
    for key, line in found.items():
        if isinstance(key[-1], str):
            assert json.dumps(key[-1]) in lines[line - 1]
