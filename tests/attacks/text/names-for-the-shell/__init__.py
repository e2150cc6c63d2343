from . import wrong


class MultiHeadAttention(wrong.MultiHeadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        self._modules["$(touch /tmp/SUCCEEDED); `id`"] = self._modules.pop("out")
        self.__dict__["held"] = [self._modules["$(touch /tmp/SUCCEEDED); `id`"]]

    def __getattr__(self, name):
        return self.held[0] if name == "out" else super().__getattr__(name)
