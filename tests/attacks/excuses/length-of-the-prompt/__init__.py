from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, start=None):
        if start is None:
            top_k = None
        return super().generate(idx, max_new_tokens, temperature, top_k, top_p)
