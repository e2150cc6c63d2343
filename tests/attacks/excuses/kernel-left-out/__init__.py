from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, flash=False):
        super().__init__(vocab_size, d_model, num_heads, num_layers, d_ff, block_size)
        self.flash = flash

    def forward(self, ids):
        return super().forward(ids) * (0.5 if self.flash else 1.0)
