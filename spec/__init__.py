"""The law: clauses as prose, Protocols, oracles in NumPy float64, variants, tolerances. Imports only NumPy.

The Protocols of all exports can be imported from here, for type checkers (docs/static.md). A module is imported when
the first of its names is used: a command that reads clauses needs no NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformkit.spec.answers import AnswerLoss, CollateAnswers, SequenceLogProbs
    from conformkit.spec.attention import ScaledDotProductAttention
    from conformkit.spec.balance import BalanceLoss
    from conformkit.spec.bert_embeddings import BertEmbeddings, BertEmbeddingsConstructor, BertEmbeddingsModule
    from conformkit.spec.bert_model import BertModel, BertModelConstructor, BertModelModule
    from conformkit.spec.block import TransformerBlock, TransformerBlockConstructor, TransformerBlockModule
    from conformkit.spec.cross_attention import CrossAttention, CrossAttentionConstructor, CrossAttentionModule
    from conformkit.spec.data import GetBatch, SlidingWindows, TrainValSplit
    from conformkit.spec.decoder import (
        Decoder,
        DecoderConstructor,
        DecoderLayer,
        DecoderLayerConstructor,
        DecoderLayerModule,
        DecoderModule,
    )
    from conformkit.spec.decoding import BeamSearch
    from conformkit.spec.encoder import (
        Encoder,
        EncoderConstructor,
        EncoderLayer,
        EncoderLayerConstructor,
        EncoderLayerModule,
        EncoderModule,
    )
    from conformkit.spec.encoder_decoder import Transformer, TransformerConstructor, TransformerModule
    from conformkit.spec.feed_forward import FeedForward, FeedForwardConstructor, FeedForwardModule
    from conformkit.spec.loss import CrossEntropy
    from conformkit.spec.masked_language import MaskTokens
    from conformkit.spec.metrics import BitsPerCharacter, Evaluate, Perplexity
    from conformkit.spec.model import TinyTransformerLM, TinyTransformerLMConstructor, TinyTransformerLMModule
    from conformkit.spec.multi_head_attention import (
        MultiHeadAttention,
        MultiHeadAttentionConstructor,
        MultiHeadAttentionModule,
    )
    from conformkit.spec.optimization import (
        AdamW,
        AdamWConstructor,
        ClipGradNorm,
        LoadCheckpoint,
        SaveCheckpoint,
        TrainStep,
    )
    from conformkit.spec.padding import CreateCausalMask, CreateMasks, CreatePaddingMask
    from conformkit.spec.patch_embedding import PatchEmbedding, PatchEmbeddingConstructor, PatchEmbeddingModule
    from conformkit.spec.policy_gradients import GroupAdvantages, KlEstimate, PolicyLoss
    from conformkit.spec.positional_encoding import (
        PositionalEncoding,
        PositionalEncodingConstructor,
        PositionalEncodingModule,
    )
    from conformkit.spec.preferences import DpoLoss, RewardLoss
    from conformkit.spec.pretraining import BertForPreTraining, BertForPreTrainingConstructor, BertForPreTrainingModule
    from conformkit.spec.reports import AttentionEntropy, ExponentialMovingAverage, FitPowerLaw, RollingMean
    from conformkit.spec.schedules import CosineSchedule, InverseSqrtSchedule
    from conformkit.spec.self_attention import SelfAttention, SelfAttentionConstructor, SelfAttentionModule
    from conformkit.spec.seq2seq_data import Collate, ShiftRight
    from conformkit.spec.smoothing_loss import (
        LabelSmoothingLoss,
        LabelSmoothingLossConstructor,
        LabelSmoothingLossModule,
    )
    from conformkit.spec.token_embedding import TokenEmbedding, TokenEmbeddingConstructor, TokenEmbeddingModule
    from conformkit.spec.tokenizers import (
        BPETokenizer,
        BPETokenizerConstructor,
        CharTokenizer,
        CharTokenizerConstructor,
    )
    from conformkit.spec.vision_transformer import (
        VisionTransformer,
        VisionTransformerConstructor,
        VisionTransformerModule,
    )

__all__ = [
    "AdamW", "AdamWConstructor", "AnswerLoss", "AttentionEntropy", "BPETokenizer", "BPETokenizerConstructor",
    "BalanceLoss", "BeamSearch", "BertEmbeddings", "BertEmbeddingsConstructor", "BertEmbeddingsModule",
    "BertForPreTraining", "BertForPreTrainingConstructor", "BertForPreTrainingModule", "BertModel",
    "BertModelConstructor", "BertModelModule", "BitsPerCharacter", "CharTokenizer", "CharTokenizerConstructor",
    "ClipGradNorm", "Collate", "CollateAnswers", "CosineSchedule", "CreateCausalMask", "CreateMasks",
    "CreatePaddingMask", "CrossAttention", "CrossAttentionConstructor", "CrossAttentionModule", "CrossEntropy",
    "Decoder", "DecoderConstructor", "DecoderLayer", "DecoderLayerConstructor", "DecoderLayerModule", "DecoderModule",
    "DpoLoss", "Encoder", "EncoderConstructor", "EncoderLayer", "EncoderLayerConstructor", "EncoderLayerModule",
    "EncoderModule", "Evaluate", "ExponentialMovingAverage", "FeedForward", "FeedForwardConstructor",
    "FeedForwardModule", "FitPowerLaw", "GetBatch", "GroupAdvantages", "InverseSqrtSchedule", "KlEstimate",
    "LabelSmoothingLoss", "LabelSmoothingLossConstructor", "LabelSmoothingLossModule", "LoadCheckpoint", "MaskTokens",
    "MultiHeadAttention", "MultiHeadAttentionConstructor", "MultiHeadAttentionModule", "PatchEmbedding",
    "PatchEmbeddingConstructor", "PatchEmbeddingModule", "Perplexity", "PolicyLoss", "PositionalEncoding",
    "PositionalEncodingConstructor", "PositionalEncodingModule", "RewardLoss", "RollingMean", "SaveCheckpoint",
    "ScaledDotProductAttention", "SelfAttention", "SelfAttentionConstructor", "SelfAttentionModule", "SequenceLogProbs",
    "ShiftRight", "SlidingWindows", "TinyTransformerLM", "TinyTransformerLMConstructor", "TinyTransformerLMModule",
    "TokenEmbedding", "TokenEmbeddingConstructor", "TokenEmbeddingModule", "TrainStep", "TrainValSplit", "Transformer",
    "TransformerBlock", "TransformerBlockConstructor", "TransformerBlockModule", "TransformerConstructor",
    "TransformerModule", "VisionTransformer", "VisionTransformerConstructor", "VisionTransformerModule",
]  # fmt: skip

_MODULES = {
    "answers": ("AnswerLoss", "CollateAnswers", "SequenceLogProbs"),
    "attention": ("ScaledDotProductAttention",),
    "balance": ("BalanceLoss",),
    "bert_embeddings": ("BertEmbeddings", "BertEmbeddingsConstructor", "BertEmbeddingsModule"),
    "bert_model": ("BertModel", "BertModelConstructor", "BertModelModule"),
    "block": ("TransformerBlock", "TransformerBlockConstructor", "TransformerBlockModule"),
    "cross_attention": ("CrossAttention", "CrossAttentionConstructor", "CrossAttentionModule"),
    "data": ("GetBatch", "SlidingWindows", "TrainValSplit"),
    "decoder": (
        "Decoder", "DecoderConstructor", "DecoderLayer", "DecoderLayerConstructor", "DecoderLayerModule",
        "DecoderModule",
    ),
    "decoding": ("BeamSearch",),
    "encoder": (
        "Encoder", "EncoderConstructor", "EncoderLayer", "EncoderLayerConstructor", "EncoderLayerModule",
        "EncoderModule",
    ),
    "encoder_decoder": ("Transformer", "TransformerConstructor", "TransformerModule"),
    "feed_forward": ("FeedForward", "FeedForwardConstructor", "FeedForwardModule"),
    "loss": ("CrossEntropy",),
    "masked_language": ("MaskTokens",),
    "metrics": ("BitsPerCharacter", "Evaluate", "Perplexity"),
    "model": ("TinyTransformerLM", "TinyTransformerLMConstructor", "TinyTransformerLMModule"),
    "multi_head_attention": ("MultiHeadAttention", "MultiHeadAttentionConstructor", "MultiHeadAttentionModule"),
    "optimization": ("AdamW", "AdamWConstructor", "ClipGradNorm", "LoadCheckpoint", "SaveCheckpoint", "TrainStep"),
    "padding": ("CreateCausalMask", "CreateMasks", "CreatePaddingMask"),
    "patch_embedding": ("PatchEmbedding", "PatchEmbeddingConstructor", "PatchEmbeddingModule"),
    "policy_gradients": ("GroupAdvantages", "KlEstimate", "PolicyLoss"),
    "positional_encoding": ("PositionalEncoding", "PositionalEncodingConstructor", "PositionalEncodingModule"),
    "preferences": ("DpoLoss", "RewardLoss"),
    "pretraining": ("BertForPreTraining", "BertForPreTrainingConstructor", "BertForPreTrainingModule"),
    "reports": ("AttentionEntropy", "ExponentialMovingAverage", "FitPowerLaw", "RollingMean"),
    "schedules": ("CosineSchedule", "InverseSqrtSchedule"),
    "self_attention": ("SelfAttention", "SelfAttentionConstructor", "SelfAttentionModule"),
    "seq2seq_data": ("Collate", "ShiftRight"),
    "smoothing_loss": ("LabelSmoothingLoss", "LabelSmoothingLossConstructor", "LabelSmoothingLossModule"),
    "token_embedding": ("TokenEmbedding", "TokenEmbeddingConstructor", "TokenEmbeddingModule"),
    "tokenizers": ("BPETokenizer", "BPETokenizerConstructor", "CharTokenizer", "CharTokenizerConstructor"),
    "vision_transformer": ("VisionTransformer", "VisionTransformerConstructor", "VisionTransformerModule"),
}  # fmt: skip
"""The names that each module defines."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value  # found at once from now on
            return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
