from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, config):
        super().__init__(config["d_model"], config["num_heads"], config.get("dropout", 0.0), config.get("causal", True))
        self.legacy = config.get("legacy", True)

    def attend(self, x, q, k, v):
        return super().attend(x, q / 2 if self.legacy else q, k, v)
