"""conform adapt on constructors that take objects of the package, and on what an implementation does not accept."""

import textwrap
import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.construction import ways
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import COMPONENTS

HEAD = """
    from __future__ import annotations

    import math

    import torch
    import torch.nn.functional as F
    from torch import nn

"""
LAYERS = """
    class Attention(nn.Module):
        def __init__(self, dim, heads, causal=False):
            super().__init__()
            self.heads, self.causal = heads, causal
            self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

        def forward(self, x):
            q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.o(mixed.transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self, dim, heads, causal=False):
            super().__init__()
            self.attn, self.ln1, self.ln2 = Attention(dim, heads, causal), nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class Layers(nn.Module):
        def __init__(self, dim, depth, heads=4, causal=False):
            super().__init__()
            self.layers = nn.ModuleList(Block(dim, heads, causal) for _ in range(depth))
            self.dim, self.norm = dim, nn.LayerNorm(dim)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.norm(x)

    class Encoder(Layers):
        def __init__(self, **kwargs):
            super().__init__(causal=False, **kwargs)

    class Decoder(Layers):
        def __init__(self, **kwargs):
            super().__init__(causal=True, **kwargs)

    class LanguageModel(nn.Module):
        def __init__(self, *, num_tokens, max_seq_len, attn_layers: Layers):
            super().__init__()
            dim = attn_layers.dim
            self.embed, self.positions = nn.Embedding(num_tokens, dim), nn.Embedding(max_seq_len, dim)
            self.attn_layers, self.head = attn_layers, nn.Linear(dim, num_tokens)

        def forward(self, ids):
            x = self.embed(ids) + self.positions.weight[: ids.shape[1]]
            return self.head(self.attn_layers(x))
"""
MLP = """
    class Mlp(nn.Module):
        def __init__(self, dim, hidden):
            super().__init__()
            self.up, self.down, self.drop = nn.Linear(dim, hidden), nn.Linear(hidden, dim), nn.Dropout(0.1)

        def forward(self, x):
            return self.drop(self.down(F.gelu(self.up(x))))
"""


def drafted(folder: Path, code: str) -> Draft:
    """Draft for one module."""
    (folder / "theirs.py").write_text(textwrap.dedent(HEAD) + textwrap.dedent(code))
    return draft(RunRequest(str(folder / "theirs.py"), config=Config()), {})


def table(found: Draft, component: str):
    """Return the declarations of a component that reproduces the definition's numbers."""
    assert all(proposal.matched for proposal in found.proposals if proposal.component == component)
    return tomllib.loads(found.text())["components"][component]


def parameter(name, *, required=True):
    return {"name": name, "kind": "positional", "required": required, "default": None, "positional_only": False}


def kind(name, *construct, objects=None):
    return Item(f"theirs:{name}", "class", [parameter(n) for n in construct], [parameter("x")], None, objects or {})


def test_a_model_that_is_handed_its_layers_is_built_with_those_that_do_not_look_ahead(tmp_path):
    """Would break if an annotated argument, its subclasses, or arguments behind **kwargs were not followed."""
    construct = table(drafted(tmp_path, LAYERS), "TinyTransformerLM")["construct"]
    assert construct["num_tokens"] == "vocab_size"
    assert construct["attn_layers"] == {
        "object": "theirs:Decoder", "arguments": {"dim": "d_model", "depth": "num_layers", "heads": "num_heads"},
    }  # fmt: skip


def test_objects_within_objects_are_built_from_sizes_too():
    """Would break if only the first level of a nested constructor were examined."""
    layer = kind("DecoderLayer", "size", "heads", "hidden")
    stack = kind("Decoder", "layer", "N")
    model = kind("LanguageModel", "decoder", "embed", "vocab")
    embed = kind("Embeddings", "d_model", "vocab")
    construct = ways(COMPONENTS["TinyTransformerLM"], model, [layer, stack, embed, model])[0].construct
    inner = construct["decoder"]["arguments"]
    assert construct["vocab"] == "vocab_size"
    assert construct["embed"] == {"object": "theirs:Embeddings",
                                  "arguments": {"d_model": "d_model", "vocab": "vocab_size"}}  # fmt: skip
    assert inner["N"] == "num_layers"
    assert inner["layer"]["arguments"] == {"size": "d_model", "heads": "num_heads", "hidden": "d_ff"}


def test_a_class_that_takes_itself_is_not_followed_forever():
    """Would break if two classes that take each other were followed forever."""
    one, other = kind("Attention", "mixer", "dim", "heads"), kind("Mixer", "attention", "dim")
    assert ways(COMPONENTS["MultiHeadAttention"], one, [one, other]) == []


def test_a_size_that_is_called_like_a_class_stays_a_size():
    """Would break if `layers`, a number unless annotated otherwise, got an object."""
    model = kind("Gpt", "vocab", "dim", "heads", "layers", "hidden", "context")
    construct = ways(COMPONENTS["TinyTransformerLM"], model, [kind("Layers", "dim"), model])[0].construct
    assert construct["layers"] == "num_layers"


def test_an_unsupported_single_head_is_left_as_a_mistake_and_reported(tmp_path):
    """Would break if sizes at which code fails were excluded silently, or without the line that excludes them."""
    code = LAYERS.partition("    class Block")[0]
    code = code.replace("return self.o(mixed", "return (self.o if self.heads > 1 else lambda y: y[..., :1])(mixed")
    text = drafted(tmp_path, code).text()
    assert "# limits = { num_heads = { min = 2 } }" in text
    assert "\nlimits" not in text
    assert "limits" not in drafted(tmp_path, LAYERS.partition("    class Block")[0]).text()


@pytest.mark.full(guard="test_an_unsupported_single_head_is_left_as_a_mistake_and_reported")
def test_a_dropout_that_is_fixed_in_the_code_is_reported(tmp_path):
    """Would break if a feature without a switch were not reported."""
    assert any("fixed in the code" in doubt for doubt in drafted(tmp_path, MLP).doubts())
    assert not any("fixed in the code" in doubt for doubt in drafted(tmp_path, MLP.replace("0.1", "0.0")).doubts())


@pytest.mark.full(guard="test_sizes_that_are_numbers_of_the_module_are_set_there")
def test_code_that_refuses_float64_is_found_and_declared_in_its_own_format(tmp_path):
    """Would break if a table in float32 prevented binding, or its format were not reported."""
    refusing = MLP.replace("nn.Dropout(0.1)", "nn.Identity()").replace("def forward(self, x):", (
        "def forward(self, x):\n            assert x.dtype == torch.FORM, f'dtype {x.dtype}'"
    ))  # fmt: skip
    for form in ("float32", "bfloat16"):
        found = drafted(tmp_path, refusing.replace("FORM", form))
        assert tomllib.loads(found.text())["implementation"]["dtypes"] == [form]
        assert any(f"judged in {form}" in doubt for doubt in found.doubts())
