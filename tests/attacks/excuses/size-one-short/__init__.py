from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        super().__init__(vocab_size - 1, d_model, num_heads, num_layers, d_ff, block_size)
