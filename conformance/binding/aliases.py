"""Argument names that mean the contract's arguments wherever one finds them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["meaning"]

_ALIASES: dict[str, tuple[str, ...]] = {
    "d_model": ("embed_dim", "n_embd", "dim", "hidden_size", "emb_dim", "embedding_dim", "width", "model_dim", "dmodel",
                "d", "n_embed", "d_in", "embed_size", "features"),
    "num_heads": ("n_heads", "n_head", "heads", "nhead", "h", "num_attention_heads", "nheads"),
    "d_ff": ("dim_feedforward", "ff_dim", "hidden_dim", "d_hidden", "ffn_dim", "intermediate_size", "d_inner", "hidden",
             "dff", "mlp_dim", "n_inner", "ff_hidden"),
    "d_k": ("dk", "key_dim"),
    "d_v": ("dv", "value_dim"),
    "vocab_size": ("vocab", "n_vocab", "v", "num_tokens", "vocabulary_size", "num_embeddings"),
    "num_layers": ("n_layers", "n_layer", "layers", "depth", "num_blocks", "n_blocks", "num_hidden_layers"),
    "block_size": ("context_length", "max_seq_len", "seq_len", "max_len", "context_size", "n_ctx", "max_length",
                   "n_positions", "max_position_embeddings", "max_seq_length", "context", "ctx_len"),
    "max_len": ("max_seq_len", "block_size", "context_length", "max_length", "seq_len", "length", "n_positions",
                "max_seq_length"),
    "dropout": ("p", "dropout_p", "drop", "p_drop", "dropout_rate", "resid_pdrop", "drop_rate", "pdrop"),
    "causal": ("is_causal", "masked", "autoregressive"),
    "kv_heads": ("num_kv_heads", "n_kv_heads", "num_key_value_heads", "n_kv_head"),
    "ids": ("idx", "input_ids", "tokens", "prompt", "x", "inp", "input", "context", "start"),
    "max_new_tokens": ("n", "num_tokens", "steps", "max_tokens", "n_tokens", "num_new_tokens", "length", "n_new"),
    "temperature": ("temp", "tau", "t"),
    "top_k": ("topk", "k"),
    "top_p": ("topp", "p", "nucleus"),
    "q": ("query", "queries", "Q"),
    "k": ("key", "keys", "K"),
    "v": ("value", "values", "V"),
    "x": ("input", "inp", "hidden_states", "src", "h", "inputs", "X"),
    "mask": ("attn_mask", "attention_mask", "M"),
}  # fmt: skip


def meaning(theirs: str, contract: Iterable[str]) -> str | None:
    """Return the contract's argument that their name stands for, None when it is none of those."""
    names = tuple(contract)
    if theirs in names:
        return theirs
    folded = theirs.lower()
    for name in names:
        if folded == name or theirs in _ALIASES.get(name, ()) or folded in _ALIASES.get(name, ()):
            return name
    return None
