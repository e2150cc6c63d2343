class CN:
    """A bag of settings: CN(n_layer=2).n_layer == 2."""

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def merge_from_dict(self, d):
        self.__dict__.update(d)
        return self

    def __repr__(self):
        return "CN(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + ")"


def default_config():
    return CN(vocab_size=100, block_size=32, n_layer=2, n_head=4, n_embd=64, n_inner=256,
              embd_pdrop=0.1, resid_pdrop=0.1, attn_pdrop=0.1)
