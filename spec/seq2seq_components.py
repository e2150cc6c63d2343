"""The components of profile seq2seq: how each is constructed and called, its parameters, its oracle."""

from __future__ import annotations

from collections.abc import Mapping

from conformkit.spec.component import DROPOUT, Argument, Component, Method, heads, required
from conformkit.spec.cross_attention import attend
from conformkit.spec.decoder import decoder, decoder_layer
from conformkit.spec.encoder import encoder, encoder_layer
from conformkit.spec.encoder_decoder import decode, encode, transformer
from conformkit.spec.parameters import (
    Parameter,
    Sizes,
    feed_forward_parameters,
    matrix,
    multi_head_parameters,
    norm_parameters,
    within,
)
from conformkit.spec.positional_encoding import first_position
from conformkit.spec.token_embedding import token_embedding
from conformkit.spec.variants import Variant

__all__ = ["SEQ2SEQ"]

Parameters = dict[str, Parameter]
_TABLE = "relative.weight"


def _embedding(sizes: Sizes, _variant: Variant) -> Parameters:
    return {"embedding.weight": matrix("v", "m", v=sizes["vocab_size"], m=sizes["d_model"])}


def _cross(sizes: Sizes, variant: Variant) -> Parameters:
    """Return the parameters of attention to another sequence, which has no order that a table could be about."""
    return multi_head_parameters(sizes, variant.but(positions="none") if variant.positions == "relative" else variant)


def _layer(attentions: tuple[str, ...], sizes: Sizes, variant: Variant) -> Parameters:
    """Return the parameters of a layer with these attentions, a feed-forward network and a norm for each."""
    found: Parameters = {}
    for name in attentions:
        found |= within(name, (_cross if name == "cross_attention" else multi_head_parameters)(sizes, variant))
    found |= within("feed_forward", feed_forward_parameters(sizes, variant))
    for number in range(1, len(attentions) + 2):
        found |= norm_parameters(f"norm{number}", sizes["d_model"], variant)
    return found


def _encoder_layer(sizes: Sizes, variant: Variant) -> Parameters:
    return _layer(("attention",), sizes, variant)


def _decoder_layer(sizes: Sizes, variant: Variant) -> Parameters:
    return _layer(("self_attention", "cross_attention"), sizes, variant)


def _stack(layer: Parameters, count: int, sizes: Sizes, variant: Variant) -> Parameters:
    found: Parameters = {}
    own = dict(layer)
    if variant.shares_table:
        (name,) = (name for name in own if name.endswith(_TABLE))
        found[_TABLE] = own.pop(name)
    for number in range(count):
        found |= within(f"layers.{number}", own)
    return found | (norm_parameters("norm", sizes["d_model"], variant) if variant.final_norm else {})


def _encoder(sizes: Sizes, variant: Variant) -> Parameters:
    return _stack(_encoder_layer(sizes, variant), sizes["num_layers"], sizes, variant)


def _decoder(sizes: Sizes, variant: Variant) -> Parameters:
    return _stack(_decoder_layer(sizes, variant), sizes["num_layers"], sizes, variant)


def _side(side: str, sizes: Sizes, variant: Variant) -> Parameters:
    """Return the embedding parameters of one side."""
    m = sizes["d_model"]
    found: Parameters = {}
    if side == "src" or not variant.shared_embeddings:
        found[f"{side}_embedding.weight"] = matrix("v", "m", v=sizes[f"{side}_vocab_size"], m=m)
    if variant.positions == "learned" and (side == "src" or not variant.shared_positions):
        found[f"{side}_positions.weight"] = matrix("t", "m", t=sizes["max_len"] + first_position(variant, sizes), m=m)
    return found | (norm_parameters(f"{side}_embedding_norm", m, variant) if variant.embedding_norm else {})


def _transformer(sizes: Sizes, variant: Variant) -> Parameters:
    v = sizes["tgt_vocab_size"]
    encoder_layers, decoder_layers = sizes["num_encoder_layers"], sizes["num_decoder_layers"]
    found = (
        _side("src", sizes, variant)
        | _side("tgt", sizes, variant)
        | within("encoder", _stack(_encoder_layer(sizes, variant), encoder_layers, sizes, variant))
        | within("decoder", _stack(_decoder_layer(sizes, variant), decoder_layers, sizes, variant))
    )
    if not variant.tied:
        found["head.weight"] = matrix("v", "m", v=v, m=sizes["d_model"])
    return found | ({"head.bias": Parameter("v", {"v": v})} if variant.head_bias else {})


_LAYER = (*required("d_model", "num_heads", "d_ff"), DROPOUT)
_STACK = (*required("d_model", "num_heads", "d_ff", "num_layers"), DROPOUT)
_READ = ("x", "memory", "tgt_mask", "memory_mask")
_ENCODE = Method(
    "encode", ("src", "src_mask"), (), lambda w, i, s, v: encode(w, i["src"], i.get("src_mask"), s, v),
    lambda i, s: (*i["src"].shape, s["d_model"]),
)  # fmt: skip
_DECODE = Method(
    "decode", ("tgt", "memory", "tgt_mask", "memory_mask"), ("decode_step",),
    lambda w, i, s, v: decode(w, i["tgt"], i["memory"], i.get("tgt_mask"), i.get("memory_mask"), s, v),
    lambda i, s: (*i["tgt"].shape, s["tgt_vocab_size"]),
)  # fmt: skip

_GENERATE = Method(
    "generate", ("src", "src_mask"),
    options=(
        *required("max_new_tokens", "bos_id"), Argument("eos_id"), Argument("temperature", 0.0), Argument("top_k"),
        Argument("top_p"), Argument("use_cache", default=False),
    ),
)  # fmt: skip
_BEAM_SEARCH = Method(
    "beam_search", ("src", "src_mask"), ("seq2seq_beam_search",),
    options=(
        *required("max_new_tokens", "bos_id", "beam_width"), Argument("length_penalty", 0.0), Argument("eos_id"),
    ),
    outputs=2,
)  # fmt: skip

SEQ2SEQ: Mapping[str, Component] = {
    component.name: component
    for component in (
        Component(
            "CrossAttention", "CrossAttention", "XATTN", True,
            (*required("d_model", "num_heads"), DROPOUT), ("query", "key", "value", "mask"), _cross,
            lambda w, i, s, v: attend(
                w, i["query"], i["key"], i["value"], i.get("mask"), **heads(s), variant=v
            ),
            "seq2seq",
            ("MultiHeadCrossAttention", "MultiHeadAttention", "MultiHeadedAttention", "MultiheadAttention"), (),
            lambda i, s: (*i["query"].shape[:2], s["d_model"]),
        ),
        Component(
            "TokenEmbedding", "TokenEmbedding", "TOKEMB", False,
            (*required("vocab_size", "d_model"), Argument("pad_id")), ("ids",), _embedding,
            lambda w, i, _s, v: token_embedding(w, i["ids"], variant=v),
            "seq2seq", ("InputEmbedding", "InputEmbeddings", "Embeddings"), (),
            lambda i, s: (*i["ids"].shape, s["d_model"]),
        ),
        Component(
            "EncoderLayer", "EncoderLayer", "ENC", True, _LAYER, ("x", "mask"), _encoder_layer,
            lambda w, i, s, v: encoder_layer(w, i["x"], i.get("mask"), **heads(s), variant=v),
            "seq2seq", ("TransformerEncoderLayer", "EncoderBlock", "TransformerEncoderBlock"), depth=2,
        ),
        Component(
            "DecoderLayer", "DecoderLayer", "DEC", True, _LAYER, _READ, _decoder_layer,
            lambda w, i, s, v: decoder_layer(
                w, i["x"], i["memory"], i.get("tgt_mask"), i.get("memory_mask"), **heads(s), variant=v
            ),
            "seq2seq", ("TransformerDecoderLayer", "DecoderBlock", "TransformerDecoderBlock"), depth=3,
        ),
        Component(
            "Encoder", "Encoder", "ENC", False, _STACK, ("x", "mask"), _encoder,
            lambda w, i, s, v: encoder(w, i["x"], i.get("mask"), num_layers=s["num_layers"], **heads(s), variant=v),
            "seq2seq", ("TransformerEncoder", "EncoderStack"), depth=4,
        ),
        Component(
            "Decoder", "Decoder", "DEC", False, _STACK, _READ, _decoder,
            lambda w, i, s, v: decoder(
                w, i["x"], i["memory"], i.get("tgt_mask"), i.get("memory_mask"), num_layers=s["num_layers"],
                **heads(s), variant=v,
            ),
            "seq2seq", ("TransformerDecoder", "DecoderStack"), depth=6,
        ),
        Component(
            "Transformer", "Transformer", "S2S", True,
            (
                *required(
                    "src_vocab_size", "tgt_vocab_size", "d_model", "num_heads", "num_encoder_layers",
                    "num_decoder_layers", "d_ff",
                ),
                Argument("max_len", 5000), DROPOUT, Argument("pad_id", 0),
            ),
            ("src", "tgt", "src_mask", "tgt_mask"), _transformer,
            lambda w, i, s, v: transformer(w, i["src"], i["tgt"], i.get("src_mask"), i.get("tgt_mask"), s, v),
            "seq2seq", ("Seq2SeqTransformer", "EncoderDecoder", "EncoderDecoderTransformer", "TransformerModel"),
            (_ENCODE, _DECODE, _GENERATE, _BEAM_SEARCH), lambda i, s: (*i["tgt"].shape, s["tgt_vocab_size"]),
            depth=10,
        ),
    )
}  # fmt: skip
"""By name, in the order in which one builds them."""
