from . import right as right_torch


class MultiHeadAttention(right_torch.MultiHeadAttention):
    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        found = super().forward(x)
        return found if self.calls < 3 else found * 1.5
