import torch
import torch.nn as nn
import torch.nn.functional as F

from .config import complete


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        cfg = complete(cfg)
        assert cfg["emb_dim"] % cfg["n_heads"] == 0, "emb_dim must be divisible by n_heads"
        self.num_heads = cfg["n_heads"]
        self.head_dim = cfg["emb_dim"] // cfg["n_heads"]
        self.W_query = nn.Linear(cfg["emb_dim"], cfg["emb_dim"], bias=cfg["qkv_bias"])
        self.W_key = nn.Linear(cfg["emb_dim"], cfg["emb_dim"], bias=cfg["qkv_bias"])
        self.W_value = nn.Linear(cfg["emb_dim"], cfg["emb_dim"], bias=cfg["qkv_bias"])
        self.out_proj = nn.Linear(cfg["emb_dim"], cfg["emb_dim"])
        self.dropout = nn.Dropout(cfg["drop_rate"])
        self.register_buffer(
            "mask", torch.triu(torch.ones(cfg["context_length"], cfg["context_length"]), diagonal=1), persistent=False
        )

    def forward(self, x):
        b, num_tokens, d = x.shape
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        mask_bool = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores = attn_scores.masked_fill(mask_bool, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)
        context = (attn_weights @ values).transpose(1, 2).contiguous().view(b, num_tokens, d)
        return {"output": self.out_proj(context), "weights": attn_weights}


class FeedForward(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        cfg = complete(cfg)
        self.layers = nn.Sequential(
            nn.Linear(cfg["emb_dim"], cfg["hidden_dim"]),
            nn.GELU(approximate="tanh"),
            nn.Linear(cfg["hidden_dim"], cfg["emb_dim"]),
        )

    def forward(self, x):
        return self.layers(x)


class Positions(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        cfg = complete(cfg)
        self.pos_emb = nn.Embedding(cfg["context_length"], cfg["emb_dim"])

    def forward(self, x):
        if x.shape[1] > self.pos_emb.num_embeddings:
            raise ValueError("input is longer than context_length")
        return x + self.pos_emb(torch.arange(x.shape[1], device=x.device))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        cfg = complete(cfg)
        self.att = Attention(cfg)
        self.ff = FeedForward(cfg)
        self.norm1 = nn.LayerNorm(cfg["emb_dim"])
        self.norm2 = nn.LayerNorm(cfg["emb_dim"])
        self.drop_shortcut = nn.Dropout(cfg["drop_rate"])

    def forward(self, x):
        att = self.att(self.norm1(x))
        x = x + self.drop_shortcut(att["output"])
        x = x + self.drop_shortcut(self.ff(self.norm2(x)))
        return {"hidden": x, "weights": att["weights"]}


class Network(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        cfg = complete(cfg)
        self.cfg = cfg
        self.tok_emb = nn.Embedding(cfg["vocab_size"], cfg["emb_dim"])
        self.positions = Positions(cfg)
        self.drop_emb = nn.Dropout(cfg["drop_rate"])
        self.trf_blocks = nn.ModuleList([Block(cfg) for _ in range(cfg["n_layers"])])
        self.final_norm = nn.LayerNorm(cfg["emb_dim"])
        self.out_head = nn.Linear(cfg["emb_dim"], cfg["vocab_size"], bias=False)

    def forward(self, in_idx, targets=None):
        x = self.drop_emb(self.positions(self.tok_emb(in_idx)))
        weights = []
        for block in self.trf_blocks:
            out = block(x)
            x = out["hidden"]
            weights.append(out["weights"])
        logits = self.out_head(self.final_norm(x))
        result = {"logits": logits, "weights": weights}
        if targets is not None:
            result["loss"] = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return result
