import functools

from . import right


def told_apart(method):
    """A wrapper shows the signature of what it wraps, whatever it does."""

    @functools.wraps(method)
    def call(self, *given, **named):
        found = method(self, *given, **named)
        return found * 0.5 if given else found

    return call


class MultiHeadAttention(right.MultiHeadAttention):
    @told_apart
    def forward(self, x):
        return super().forward(x)
