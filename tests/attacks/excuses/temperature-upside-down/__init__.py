from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def generate(self, idx, n, temp=1.0, k=None, p=None):
        return super().generate(idx, n, 1 / temp if temp else 0, k, p)
