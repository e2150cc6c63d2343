import torch
from torch import Tensor, nn

from .cache import Cache
from .layers import Block, PositionalEncoding


class LM(nn.Module):
    def __init__(self, n_vocab: int, n_ctx: int, d_model: int, n_heads: int, n_layers: int, d_hidden: int, dropout: float = 0.0):
        super().__init__()
        self.n_ctx, self.n_heads = n_ctx, n_heads
        self.embed = nn.Embedding(n_vocab, d_model)
        self.pos = PositionalEncoding(d_model, n_ctx)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, d_hidden, dropout) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.unembed = nn.Linear(d_model, n_vocab, bias=False)

    def new_caches(self, batch: int) -> list[Cache]:
        w = self.embed.weight
        return [Cache(batch, self.n_heads, self.n_ctx, w.shape[1] // self.n_heads, w) for _ in self.blocks]

    def forward(self, ids: Tensor, caches: list[Cache] | None = None) -> Tensor:
        start = caches[0].used if caches else 0
        x = self.pos(self.embed(ids), start)
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        return self.unembed(self.norm(x))

    @torch.no_grad()
    def generate(self, ids: Tensor, n_new: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        if ids.shape[1] == 0:
            raise ValueError("the prompt is empty")
        if temperature < 0:
            raise ValueError("temperature must not be negative")
        training = self.training
        self.eval()
        try:
            caches, fresh = None, ids
            for _ in range(n_new):
                if caches is None or caches and caches[0].used + fresh.shape[1] > self.n_ctx:
                    # at the start, and whenever the window slides: every position changes
                    caches, fresh = self.new_caches(ids.shape[0]), ids[:, -self.n_ctx :]
                elif not caches:  # a model without blocks has no cache
                    fresh = ids[:, -self.n_ctx :]
                logits = self(fresh, caches)[:, -1]
                fresh = self._pick(logits, temperature, top_k)
                ids = torch.cat((ids, fresh), dim=1)
        finally:
            self.train(training)
        return ids

    @staticmethod
    def _pick(logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        logits = logits / temperature
        if top_k is not None:
            best, where = logits.topk(min(top_k, logits.shape[-1]), dim=-1)
            return where.gather(-1, torch.multinomial(best.softmax(-1), 1))
        return torch.multinomial(logits.softmax(-1), 1)
