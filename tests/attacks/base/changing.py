"""Changes replies at random: arrays, fields, kinds of errors. The outcome must be a verdict."""

import random

import numpy as np

from conformkit.conformance.driver.worker import operations

TEXTS = [
    "",
    "\n",
    "x" * 5000,
    "1" * 5000,
    "1a" * 3000,
    "{i}",
    "{h}.{n}",
    "a -> b",
    "(h d) m",
    "*",
    "[",
    "..",
    "0",
    "-1",
]
TEXTS += [
    "\u202e",
    "\x1b[2J",
    "q.weight",
    "None",
    "self",
    "inf",
    "1e999",
    "\ud800",
    "\u0661",
    "\u00b2",
    "a:b:c",
    "generate",
]
VALUES = [None, 0, -1, 10**30, "", [], {}, [[]], True, 1e308, {"a": {}}, [1, 2], [10**9, 10**9]]
KINDS = ["exception", "exit", "memory", "unsupported", "output", "load", "request", "weird"]
ARRAYS = [
    lambda a: a[None],
    lambda a: a[0] if a.ndim else a,
    lambda a: a.astype(bool),
    lambda a: np.zeros((0,), a.dtype),
    lambda a: a.reshape(-1),
    lambda a: np.full(a.shape, np.nan),
    lambda a: np.full(a.shape, np.inf),
    lambda a: a[..., :1].copy() if a.ndim else a,
    lambda a: np.zeros((*a.shape[:-1], 0)) if a.ndim else a,
    lambda a: np.swapaxes(a, 0, -1).copy() if a.ndim else a,
]


def start(seed, rate):
    """Change this share of the replies from now on."""
    chance, answer = random.Random(seed), operations.Operations.answer

    def changed(self, header, arrays):
        reply, out = answer(self, header, arrays)
        return change(chance, reply, out) if chance.random() < rate else (reply, out)

    operations.Operations.answer = changed


def change(chance, reply, out):
    kind = chance.randrange(4)
    if kind == 0:
        return inside(chance, reply), out
    if kind == 1 and out:
        name = chance.choice(sorted(out))
        return reply, {**out, name: chance.choice(ARRAYS)(np.asarray(out[name]))}
    if kind == 2 and out:
        left = dict(out)
        left.pop(chance.choice(sorted(left)))
        return reply, left
    error = {"kind": chance.choice(KINDS), "type": "T", "base": "ValueError", "message": "m", "where": ""}
    return {"ok": False, "error": error}, {}


def inside(chance, value):
    """Replace one thing somewhere in a header."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        return {**value, chance.choice(TEXTS) if chance.random() < 0.1 else key: inside(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], inside(chance, value[place]), *value[place + 1 :]]
    return chance.choice(TEXTS) if isinstance(value, str) else chance.choice(VALUES)
