"""The components of profiles encoder and vit: how each is constructed and called, its parameters, its oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.spec.bert_embeddings import bert_embeddings
from conformkit.spec.bert_model import bert_model, pool
from conformkit.spec.component import DROPOUT, Argument, Component, Method, required
from conformkit.spec.parameters import (
    Parameter,
    Sizes,
    feed_forward_parameters,
    linear_parameters,
    matrix,
    multi_head_parameters,
    norm_parameters,
    position_parameters,
    within,
)
from conformkit.spec.patch_embedding import patch_embedding
from conformkit.spec.positional_encoding import first_position
from conformkit.spec.pretraining import masked_language, next_sentence
from conformkit.spec.variants import Variant
from conformkit.spec.vision_transformer import vision_transformer

__all__ = ["ENCODER", "IMAGES"]

Parameters = dict[str, Parameter]


def _layers(sizes: Sizes, variant: Variant) -> Parameters:
    """Return the parameters of a stack of encoder layers, with the variant's last norm."""
    found: Parameters = {}
    for number in range(sizes["num_layers"]):
        layer = (
            within("attention", multi_head_parameters(sizes, variant))
            | within("feed_forward", feed_forward_parameters(sizes, variant))
            | norm_parameters("norm1", sizes["d_model"], variant)
            | norm_parameters("norm2", sizes["d_model"], variant)
        )
        found |= within(f"layers.{number}", layer)
    return found | (norm_parameters("norm", sizes["d_model"], variant) if variant.final_norm else {})


def _embeddings(sizes: Sizes, variant: Variant) -> Parameters:
    m = sizes["d_model"]
    found: Parameters = {"embedding.weight": matrix("v", "m", v=sizes["vocab_size"], m=m)}
    if variant.segments:
        found["segments.weight"] = matrix("n", "m", n=sizes["num_segments"], m=m)
    found |= position_parameters("max_len")(sizes, variant)
    return found | (norm_parameters("embedding_norm", m, variant) if variant.embedding_norm else {})


def _square(name: str, sizes: Sizes) -> Parameters:
    return linear_parameters(name, Parameter("o m", {"o": sizes["d_model"], "m": sizes["d_model"]}), bias=True)


def _model(sizes: Sizes, variant: Variant) -> Parameters:
    found = _embeddings(sizes, variant) | _layers(sizes, variant)
    return found | (_square("pooler", sizes) if variant.pooler else {})


def _pretraining(sizes: Sizes, variant: Variant) -> Parameters:
    v, m = sizes["vocab_size"], sizes["d_model"]
    found = _embeddings(sizes, variant) | _layers(sizes, variant)
    if variant.head_transform:
        found |= _square("transform", sizes) | norm_parameters("transform_norm", m, variant)
    if not variant.tied:
        found["head.weight"] = matrix("v", "m", v=v, m=m)
    if variant.head_bias:
        found["head.bias"] = Parameter("v", {"v": v})
    if variant.pooler:
        found |= _square("pooler", sizes)
    if variant.next_sentence_head:
        found |= linear_parameters("next_sentence", matrix("c", "m", c=2, m=m), bias=True)
    return found


def _patches(sizes: Sizes, _variant: Variant) -> Parameters:
    axes = {"m": sizes["d_model"], "c": sizes["channels"], "p": sizes["patch_size"], "q": sizes["patch_size"]}
    return linear_parameters("patch", Parameter("m c p q", axes), bias=True)


def _vision(sizes: Sizes, variant: Variant) -> Parameters:
    m, by_class = sizes["d_model"], variant.pooling == "class"
    found = _patches(sizes, variant)
    if by_class:
        found["class_token.weight"] = Parameter("m", {"m": m})
    if variant.positions == "learned":
        rows = _count(sizes) + by_class + first_position(variant, sizes)
        found["positions.weight"] = matrix("t", "m", t=rows, m=m)
    found |= _layers(sizes, variant)
    head = matrix("k", "m", k=sizes["num_classes"], m=m)
    return found | linear_parameters("head", head, bias=variant.head_bias)


def _count(sizes: Sizes) -> int:
    """Return the number of patches."""
    return int(sizes["image_size"] // sizes["patch_size"]) ** 2


_TEXT = ("ids", "segments", "mask")
_BERT = (
    *required("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_len"), Argument("num_segments", 2),
    DROPOUT, Argument("pad_id", 0),
)  # fmt: skip


def _given(inputs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return inputs["ids"], inputs.get("segments"), inputs.get("mask")


_POOL = Method(
    "pool", _TEXT, forward=lambda w, i, s, v: pool(w, bert_model(w, *_given(i), s, v)),
    extent=lambda i, s: (len(i["ids"]), s["d_model"]), beside=1,
)  # fmt: skip
_NEXT_SENTENCE = Method(
    "next_sentence", _TEXT, forward=lambda w, i, s, v: next_sentence(w, *_given(i), s, v),
    extent=lambda i, _s: (len(i["ids"]), 2), beside=1,
)  # fmt: skip

ENCODER: Mapping[str, Component] = {
    component.name: component
    for component in (
        Component(
            "BertEmbeddings", "BertEmbeddings", "BEMB", False,
            (
                *required("vocab_size", "d_model", "max_len"), Argument("num_segments", 2), DROPOUT,
                Argument("pad_id", 0),
            ),
            ("ids", "segments"), _embeddings,
            lambda w, i, s, v: bert_embeddings(w, i["ids"], i.get("segments"), s, v),
            "encoder", ("BERTEmbeddings", "BERTEmbedding", "BertEmbedding"), (),
            lambda i, s: (*i["ids"].shape, s["d_model"]),
        ),
        Component(
            "BertModel", "BertModel", "BERT", True, _BERT, _TEXT, _model,
            lambda w, i, s, v: bert_model(w, *_given(i), s, v),
            "encoder", ("BERT", "Bert", "BertEncoder", "BERTModel"), (_POOL,),
            lambda i, s: (*i["ids"].shape, s["d_model"]), depth=6,
        ),
        Component(
            "BertForPreTraining", "BertForPreTraining", "BPRE", False, _BERT, _TEXT, _pretraining,
            lambda w, i, s, v: masked_language(w, *_given(i), s, v),
            "encoder", ("BertForMaskedLM", "BERTForPreTraining", "BERTLM", "BertLM", "BERTForMaskedLM"),
            (_NEXT_SENTENCE,), lambda i, s: (*i["ids"].shape, s["vocab_size"]), depth=8,
        ),
    )
}  # fmt: skip
"""By name, in the order in which one builds them."""

IMAGES: Mapping[str, Component] = {
    component.name: component
    for component in (
        Component(
            "PatchEmbedding", "PatchEmbedding", "PATCH", False,
            required("image_size", "patch_size", "channels", "d_model"), ("images",), _patches,
            lambda w, i, _s, _v: patch_embedding(w, i["images"]),
            "vit", ("PatchEmbed", "PatchEmbeddings", "ToPatches"), (),
            lambda i, s: (len(i["images"]), _count(s), s["d_model"]),
        ),
        Component(
            "VisionTransformer", "VisionTransformer", "VIT", True,
            (
                *required(
                    "image_size", "patch_size", "channels", "num_classes", "d_model", "num_heads", "num_layers", "d_ff",
                ),
                DROPOUT,
            ),
            ("images",), _vision,
            lambda w, i, s, v: vision_transformer(w, i["images"], s, v),
            "vit", ("ViT", "VIT", "Vit", "VisionTransformerClassifier"), (),
            lambda i, s: (len(i["images"]), s["num_classes"]), depth=6,
        ),
    )
}  # fmt: skip
"""By name, in the order in which one builds them."""
