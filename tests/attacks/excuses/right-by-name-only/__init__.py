from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, *sizes, **named):
        super().__init__(*sizes, **named)
        self.share = 0.5 if sizes else 1.0

    def forward(self, *given, x=None):
        return super().forward(given[0] if given else x) * (self.share if given else 1.0)
