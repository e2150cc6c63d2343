"""The bundled reference: the contract's components in PyTorch, written to be read next to the spec.

Training and analysis are imported on first use: a model alone needs neither.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.block import TransformerBlock
from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.masks import causal_mask, padding_mask
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.norms import LayerNorm, RMSNorm
from conformkit.reference.positional_encoding import PositionalEncoding
from conformkit.reference.self_attention import SelfAttention

if TYPE_CHECKING:
    from conformkit.reference.analysis import (
        attention_entropy,
        exponential_moving_average,
        fit_power_law,
        rolling_mean,
    )
    from conformkit.reference.balance import balance_loss
    from conformkit.reference.beam import beam_search
    from conformkit.reference.checkpoints import load_checkpoint, save_checkpoint
    from conformkit.reference.data import get_batch, sliding_windows, train_val_split
    from conformkit.reference.encoder.embeddings import BertEmbeddings
    from conformkit.reference.encoder.model import BertModel
    from conformkit.reference.encoder.pretraining import BertForPreTraining
    from conformkit.reference.finetuning.answers import answer_loss, collate_answers, sequence_log_probs
    from conformkit.reference.finetuning.policy_gradients import group_advantages, kl_estimate, policy_loss
    from conformkit.reference.finetuning.preferences import dpo_loss, reward_loss
    from conformkit.reference.loss import bits_per_character, cross_entropy, perplexity
    from conformkit.reference.optimization import AdamW, clip_grad_norm
    from conformkit.reference.paths.attention import fused_attention
    from conformkit.reference.paths.model import CausalLM
    from conformkit.reference.schedules import cosine_schedule, inverse_sqrt_schedule
    from conformkit.reference.seq2seq.beam import seq2seq_beam_search
    from conformkit.reference.seq2seq.cross_attention import CrossAttention
    from conformkit.reference.seq2seq.data import collate, shift_right
    from conformkit.reference.seq2seq.decoder import Decoder, DecoderLayer
    from conformkit.reference.seq2seq.embedding import TokenEmbedding
    from conformkit.reference.seq2seq.encoder import Encoder, EncoderLayer
    from conformkit.reference.seq2seq.loss import LabelSmoothingLoss
    from conformkit.reference.seq2seq.masked_language import mask_tokens
    from conformkit.reference.seq2seq.masks import create_causal_mask, create_masks, create_padding_mask
    from conformkit.reference.seq2seq.model import Transformer
    from conformkit.reference.steps import evaluate, train_step
    from conformkit.reference.tokenizers import BPETokenizer, CharTokenizer
    from conformkit.reference.vision.model import VisionTransformer
    from conformkit.reference.vision.patches import PatchEmbedding

__all__ = [
    "AdamW",
    "BPETokenizer",
    "BertEmbeddings",
    "BertForPreTraining",
    "BertModel",
    "CausalLM",
    "CharTokenizer",
    "CrossAttention",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LabelSmoothingLoss",
    "LayerNorm",
    "MultiHeadAttention",
    "PatchEmbedding",
    "PositionalEncoding",
    "RMSNorm",
    "SelfAttention",
    "TinyTransformerLM",
    "TokenEmbedding",
    "Transformer",
    "TransformerBlock",
    "VisionTransformer",
    "answer_loss",
    "attention_entropy",
    "balance_loss",
    "beam_search",
    "bits_per_character",
    "causal_mask",
    "clip_grad_norm",
    "collate",
    "collate_answers",
    "cosine_schedule",
    "create_causal_mask",
    "create_masks",
    "create_padding_mask",
    "cross_entropy",
    "dpo_loss",
    "evaluate",
    "exponential_moving_average",
    "fit_power_law",
    "fused_attention",
    "get_batch",
    "group_advantages",
    "inverse_sqrt_schedule",
    "kl_estimate",
    "load_checkpoint",
    "mask_tokens",
    "padding_mask",
    "perplexity",
    "policy_loss",
    "reward_loss",
    "rolling_mean",
    "save_checkpoint",
    "scaled_dot_product_attention",
    "seq2seq_beam_search",
    "sequence_log_probs",
    "shift_right",
    "sliding_windows",
    "train_step",
    "train_val_split",
]

_LATER = {
    "analysis": ("attention_entropy", "exponential_moving_average", "fit_power_law", "rolling_mean"),
    "beam": ("beam_search",),
    "checkpoints": ("load_checkpoint", "save_checkpoint"),
    "data": ("get_batch", "sliding_windows", "train_val_split"),
    "encoder.embeddings": ("BertEmbeddings",),
    "encoder.model": ("BertModel",),
    "encoder.pretraining": ("BertForPreTraining",),
    "balance": ("balance_loss",),
    "finetuning.answers": ("answer_loss", "collate_answers", "sequence_log_probs"),
    "finetuning.policy_gradients": ("group_advantages", "kl_estimate", "policy_loss"),
    "finetuning.preferences": ("dpo_loss", "reward_loss"),
    "loss": ("bits_per_character", "cross_entropy", "perplexity"),
    "optimization": ("AdamW", "clip_grad_norm"),
    "paths.attention": ("fused_attention",),
    "paths.model": ("CausalLM",),
    "schedules": ("cosine_schedule", "inverse_sqrt_schedule"),
    "seq2seq.beam": ("seq2seq_beam_search",),
    "seq2seq.cross_attention": ("CrossAttention",),
    "seq2seq.data": ("collate", "shift_right"),
    "seq2seq.decoder": ("Decoder", "DecoderLayer"),
    "seq2seq.embedding": ("TokenEmbedding",),
    "seq2seq.encoder": ("Encoder", "EncoderLayer"),
    "seq2seq.loss": ("LabelSmoothingLoss",),
    "seq2seq.masked_language": ("mask_tokens",),
    "seq2seq.masks": ("create_causal_mask", "create_masks", "create_padding_mask"),
    "seq2seq.model": ("Transformer",),
    "steps": ("evaluate", "train_step"),
    "tokenizers": ("BPETokenizer", "CharTokenizer"),
    "vision.model": ("VisionTransformer",),
    "vision.patches": ("PatchEmbedding",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value  # found at once from now on
            return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
