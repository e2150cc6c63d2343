import itertools

from . import right


class Endless(dict):
    def items(self):
        held = next(iter(super().values()))
        return ((f"w{number}", held) for number in itertools.count())


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self.out, "_parameters", Endless(self.out._parameters))

    def named_parameters(self, *args, **kwargs):
        return iter(self.out._parameters.items())
