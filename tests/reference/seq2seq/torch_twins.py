"""PyTorch's own encoder-decoder with the weights of the reference, an independent implementation to compare with."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.seq2seq.decoder import DecoderLayer
from conformkit.reference.seq2seq.encoder import EncoderLayer
from conformkit.reference.seq2seq.model import Transformer
from conformkit.spec.variants import Variant

TORCH = Variant(qkv_bias=True, output_bias=True, activation="relu")
"""The choices of torch.nn.Transformer, except for the placement of norms."""


def scramble(module: nn.Module) -> None:
    """Fill all parameters with noise, norms and biases among them."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)


def attention_twin(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """Return torch's attention with the same weights."""
    theirs = nn.MultiheadAttention(ours.d_model, ours.num_heads, batch_first=True, dtype=torch.float64)
    _copy_attention(ours, theirs)
    return theirs


def encoder_twin(ours: EncoderLayer, d_ff: int) -> nn.TransformerEncoderLayer:
    """Return torch's encoder layer with the same weights."""
    d_model, heads = ours.attention.d_model, ours.attention.num_heads
    theirs = nn.TransformerEncoderLayer(
        d_model, heads, d_ff, 0.0, batch_first=True, norm_first=ours.pre, dtype=torch.float64
    )
    _copy_attention(ours.attention, theirs.self_attn)
    _copy_rest(ours, theirs)
    return theirs


def decoder_twin(ours: DecoderLayer, d_ff: int) -> nn.TransformerDecoderLayer:
    """Return torch's decoder layer with the same weights."""
    d_model, heads = ours.self_attention.d_model, ours.self_attention.num_heads
    theirs = nn.TransformerDecoderLayer(
        d_model, heads, d_ff, 0.0, batch_first=True, norm_first=ours.pre, dtype=torch.float64
    )
    _copy_attention(ours.self_attention, theirs.self_attn)
    _copy_attention(ours.cross_attention, theirs.multihead_attn)
    _copy_rest(ours, theirs)
    return theirs


def stacks_twin(ours: Transformer, d_ff: int) -> nn.Transformer:
    """Return torch's encoder and decoder, which have no embeddings and no head, with the same weights."""
    layers = [layer for layer in ours.encoder.layers if isinstance(layer, EncoderLayer)]
    d_model, heads, pre = layers[0].attention.d_model, layers[0].attention.num_heads, layers[0].pre
    norm = nn.LayerNorm(d_model, dtype=torch.float64)
    encoder = nn.TransformerEncoder(encoder_twin(layers[0], d_ff), len(layers), norm, enable_nested_tensor=False)
    theirs = nn.Transformer(
        d_model, heads, 0, len(ours.decoder.layers), d_ff, 0.0, batch_first=True, norm_first=pre, dtype=torch.float64,
        custom_encoder=encoder,
    )  # fmt: skip
    for mine, layer in zip(layers, theirs.encoder.layers, strict=True):
        layer.load_state_dict(encoder_twin(mine, d_ff).state_dict())
    for mine, layer in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        layer.load_state_dict(decoder_twin(mine, d_ff).state_dict())
    theirs.encoder.norm.load_state_dict(ours.encoder.norm.state_dict())
    theirs.decoder.norm.load_state_dict(ours.decoder.norm.state_dict())
    return theirs.eval()


def logits_of_twin(ours: Transformer, d_ff: int, src: Tensor, tgt: Tensor) -> Tensor:
    """Return the output of torch's stacks between the reference's embeddings and head; True hides in torch."""
    theirs = stacks_twin(ours, d_ff)
    hidden = ~torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()
    x = theirs(
        ours.src_positions(ours.src_embedding(src)), ours.tgt_positions(ours.tgt_embedding(tgt)), tgt_mask=hidden,
        src_key_padding_mask=src == ours.pad_id, tgt_key_padding_mask=tgt == ours.pad_id,
        memory_key_padding_mask=src == ours.pad_id,
    )  # fmt: skip
    logits: Tensor = ours.head(x)
    return logits


@torch.no_grad()
def _copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
    assert ours.out is not None
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def _copy_rest(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.linear1.load_state_dict(ours.feed_forward.up.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.down.state_dict())
    for name in ("norm1", "norm2", "norm3"):
        if hasattr(ours, name):
            getattr(theirs, name).load_state_dict(getattr(ours, name).state_dict())
