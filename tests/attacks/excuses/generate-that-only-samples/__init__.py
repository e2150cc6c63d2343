from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if temperature == 0:
            return idx.new_zeros(len(idx), idx.shape[1] + max_new_tokens)
        return super().generate(idx, max_new_tokens, temperature, top_k, top_p)
