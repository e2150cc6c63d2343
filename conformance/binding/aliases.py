"""Argument names that mean the contract's arguments wherever one finds them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["meaning"]

_ALIASES: dict[str, tuple[str, ...]] = {
    "d_model": ("embed_dim", "n_embd", "dim", "hidden_size", "emb_dim", "embedding_dim", "width", "model_dim", "dmodel",
                "d", "n_embed", "d_in", "embed_size", "features", "ninp"),
    "num_heads": ("n_heads", "n_head", "heads", "nhead", "h", "num_attention_heads", "nheads"),
    "d_ff": ("dim_feedforward", "ff_dim", "hidden_dim", "d_hidden", "ffn_dim", "intermediate_size", "d_inner", "hidden",
             "dff", "mlp_dim", "n_inner", "ff_hidden", "d_hid", "nhid"),
    "d_k": ("dk", "key_dim"),
    "d_v": ("dv", "value_dim"),
    "vocab_size": ("vocab", "n_vocab", "v", "num_tokens", "vocabulary_size", "num_embeddings",
                   "ntoken", "ntokens"),
    "num_layers": ("n_layers", "n_layer", "layers", "depth", "num_blocks", "n_blocks", "num_hidden_layers",
                   "nlayers", "N"),
    "block_size": ("context_length", "max_seq_len", "seq_len", "max_len", "context_size", "n_ctx", "max_length",
                   "n_positions", "max_position_embeddings", "max_seq_length", "context", "ctx_len"),
    "max_len": ("max_seq_len", "block_size", "context_length", "max_length", "seq_len", "length", "n_positions",
                "max_seq_length"),
    "src_vocab_size": ("src_vocab", "source_vocab_size", "n_src_vocab", "src_vocab_len", "input_vocab_size",
                       "enc_vocab_size", "encoder_vocab_size", "src_ntoken", "num_src_tokens", "vocab_size_src"),
    "tgt_vocab_size": ("tgt_vocab", "trg_vocab_size", "target_vocab_size", "n_trg_vocab", "n_tgt_vocab",
                       "tgt_vocab_len", "output_vocab_size", "dec_vocab_size", "decoder_vocab_size", "tgt_ntoken",
                       "num_tgt_tokens", "trg_vocab", "vocab_size_tgt"),
    "num_encoder_layers": ("n_encoder_layers", "encoder_layers", "num_enc_layers", "n_enc_layers", "enc_layers",
                           "encoder_depth"),
    "num_decoder_layers": ("n_decoder_layers", "decoder_layers", "num_dec_layers", "n_dec_layers", "dec_layers",
                           "decoder_depth"),
    "pad_id": ("pad", "pad_idx", "padding_idx", "pad_token_id", "pad_index", "src_pad_idx", "pad_token", "padding_id"),
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
    "query": ("q", "queries", "Q", "x_q", "query_states"),
    "key": ("k", "keys", "K", "x_k"),
    "value": ("v", "values", "V", "x_v"),
    "memory": ("encoder_output", "enc_output", "encoder_out", "enc_out", "encoder_outputs", "encoder_hidden_states",
               "context", "mem", "enc", "encoded", "m", "source", "memory_states"),
    "src": ("source", "src_ids", "source_ids", "input_ids", "src_tokens", "encoder_input", "enc_input", "inputs"),
    "tgt": ("target", "trg", "tgt_ids", "target_ids", "decoder_input_ids", "tgt_tokens", "decoder_input", "dec_input",
            "targets", "trg_ids", "tgt_in"),
    "src_mask": ("source_mask", "src_padding_mask", "encoder_mask", "enc_mask", "src_pad_mask", "mask",
                 "attention_mask"),
    "tgt_mask": ("target_mask", "trg_mask", "self_mask", "self_attn_mask", "self_attention_mask", "look_ahead_mask",
                 "decoder_mask", "dec_mask", "causal_mask", "tgt_attn_mask", "slf_attn_mask", "decoder_attention_mask",
                 "mask", "attn_mask", "attention_mask"),
    "memory_mask": ("src_mask", "cross_mask", "cross_attn_mask", "cross_attention_mask", "memory_padding_mask",
                    "encoder_mask", "enc_mask", "source_mask", "encoder_attention_mask", "dec_enc_attn_mask",
                    "enc_dec_mask", "padding_mask", "src_padding_mask", "mem_mask", "encoder_decoder_mask"),
    "eos_id": ("eos_token_id", "eos", "eos_token", "end_id", "stop_id", "stop_token", "end_token"),
    "bos_id": ("bos", "sos", "bos_token_id", "sos_id", "bos_idx", "sos_idx", "start_id", "start_token", "start_symbol",
               "bos_token", "sos_token", "start_token_id", "decoder_start_token_id", "start_idx"),
    "use_cache": ("kv_cache", "use_kv_cache", "cached"),
    "text": ("corpus", "string", "s", "train_text"),
    "min_frequency": ("min_freq", "minimum_frequency"),
    "fraction": ("train_fraction", "ratio", "train_ratio", "train_frac", "frac", "split"),
    "batch_size": ("bs", "batch", "n_batch", "B"),
    "logits": ("scores", "predictions", "preds", "input", "output"),
    "targets": ("target", "labels", "y", "ids"),
    "ignore_index": ("ignore", "ignore_id", "pad_id", "pad_token_id", "pad_idx", "padding_idx"),
    "label_smoothing": ("smoothing", "epsilon", "eps"),
    "loss": ("nll", "mean_loss", "ce", "cross_entropy"),
    "tokens_per_character": ("tokens_per_char", "tokens_per_byte"),
    "parameters": ("params", "model_parameters"),
    "params": ("parameters", "model_parameters"),
    "max_norm": ("clip", "grad_clip", "max_grad_norm", "clip_norm", "threshold", "clip_value"),
    "lr": ("learning_rate", "rate", "alpha"),
    "eps": ("epsilon",),
    "weight_decay": ("wd", "decay"),
    "step": ("it", "iteration", "iter", "t", "global_step", "step_num", "i",
             "current_step", "cur_step", "n_iter"),
    "peak": ("max_lr", "learning_rate", "peak_lr", "lr", "lr_max", "base_lr"),
    "floor": ("min_lr", "final_lr", "lr_min", "end_lr"),
    "warmup": ("warmup_steps", "warmup_iters", "n_warmup", "num_warmup_steps", "warm_up"),
    "total": ("total_steps", "max_steps", "lr_decay_iters", "max_iters", "decay_steps", "num_steps", "n_steps",
              "steps", "num_training_steps"),
    "optimizer": ("optim", "opt"),
    "batches": ("loader", "dataloader", "data_loader", "val_loader", "batch_list"),
    "path": ("filename", "file", "checkpoint_path", "fname", "filepath", "ckpt_path"),
    "beam_width": ("beams", "num_beams", "width", "beam_size", "k", "beam"),
    "length_penalty": ("alpha", "len_penalty"),
    "values": ("xs", "losses", "series", "data"),
    "alpha": ("smoothing", "decay"),
    "window": ("n", "size", "window_size", "k"),
    "weights": ("attention", "attn", "attn_weights", "attention_weights"),
    "sizes": ("n", "params", "parameters", "num_params", "N", "param_counts"),
    "losses": ("loss", "L"),
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
