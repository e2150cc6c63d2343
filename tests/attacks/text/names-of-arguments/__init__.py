import inspect

from .wrong import scaled_dot_product_attention as _wrong


class Word(str):
    isidentifier = lambda self: True
    __hash__ = str.__hash__
    __eq__ = str.__eq__


NAMES = [
    "q",
    "k",
    "v",
    "mask=__import__('os').system('id')\n#",
    'a"]\n[components.x]\npath = "os:system',
    "b\x1b[2J\u202e",
]


def signature():
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [
        inspect.Parameter(Word(name), kind, default=inspect.Parameter.empty if n < 3 else None)
        for n, name in enumerate(NAMES)
    ]
    return inspect.Signature(found)


class Wrong:
    __signature__ = signature()

    def __call__(self, q, k, v, *more, **named):
        return _wrong(q, k, v)


scaled_dot_product_attention = lambda *given, **named: _wrong(*given[:3])
scaled_dot_product_attention.__signature__ = signature()
