"""conform adapt on code in other styles: what it must declare for each, besides other names."""

import textwrap
import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.candidates import near_miss
from conformkit.conformance.discovery.construction import ways
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import COMPONENTS

HEAD = """
    import math

    import torch
    import torch.nn.functional as F
    from torch import nn

"""
LECTURE = """
    n_embd, block_size, vocab_size = 12, 8, 11

    class Head(nn.Module):
        def __init__(self, head_size):
            super().__init__()
            self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))
            self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

        def forward(self, x):
            T = x.shape[1]
            scores = self.query(x) @ self.key(x).mT * self.key.out_features**-0.5
            return scores.masked_fill(self.tril[:T, :T] == 0, -math.inf).softmax(-1) @ self.value(x)

    class MultiHeadAttention(nn.Module):
        def __init__(self, num_heads, head_size):
            super().__init__()
            self.heads = nn.ModuleList([Head(head_size) for _ in range(num_heads)])
            self.proj = nn.Linear(head_size * num_heads, n_embd)

        def forward(self, x):
            return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))
"""
LAST_ONLY = """
    class Gpt(nn.Module):
        def __init__(self, vocab_size, n_embd, n_head, n_layer, n_inner, block_size):
            super().__init__()
            layer = nn.TransformerEncoderLayer(n_embd, n_head, n_inner, 0.0, "relu", batch_first=True)
            self.body = nn.TransformerEncoder(layer, n_layer)
            self.wte, self.head = nn.Embedding(vocab_size, n_embd), nn.Linear(n_embd, vocab_size)
            angles = torch.outer(torch.arange(block_size), 10000 ** (-torch.arange(0, n_embd, 2) / n_embd))
            self.register_buffer("wave", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

        def forward(self, idx, targets=None):
            T = idx.shape[1]
            x = self.wte(idx) * math.sqrt(self.wte.embedding_dim) + self.wave[:T]
            x = self.body(x, torch.ones(T, T, dtype=torch.bool).triu(1))
            return self.head(x if targets is not None else x[:, [-1]]), None
"""
SEQUENCE_FIRST = """
    class Attention(nn.Module):
        def __init__(self, ninp, nhead):
            super().__init__()
            self.nhead, self.qkv = nhead, nn.Linear(ninp, 3 * ninp, bias=False)
            self.out = nn.Linear(ninp, ninp, bias=False)

        def forward(self, x, attn_mask=None):
            T, B, D = x.shape
            q, k, v = self.qkv(x).view(T, B, 3, self.nhead, D // self.nhead).permute(2, 1, 3, 0, 4)
            scores = q @ k.mT / math.sqrt(D // self.nhead)
            if attn_mask is not None:
                scores = scores.masked_fill(attn_mask, -math.inf)
            return self.out((scores.softmax(-1) @ v).permute(2, 0, 1, 3).reshape(T, B, D))
"""
MINUS_ONE = """
    class RMSNorm(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(dim))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * (1 + self.weight)

    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

        def forward(self, x):
            q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.o(mixed.transpose(1, 2).flatten(2))

    class MLP(nn.Module):
        def __init__(self, dim, hidden):
            super().__init__()
            self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

        def forward(self, x):
            return self.down(F.gelu(self.up(x)))

    class Block(nn.Module):
        def __init__(self, dim, heads, hidden):
            super().__init__()
            self.attn, self.mlp, self.attn_norm, self.mlp_norm = (
                Attention(dim, heads), MLP(dim, hidden), RMSNorm(dim), RMSNorm(dim)
            )

        def forward(self, x):
            x = x + self.attn(self.attn_norm(x))
            return x + self.mlp(self.mlp_norm(x))
"""
NOBODY_KNOWS = """
    class Mlp(nn.Module):
        def __init__(self, config):
            super().__init__()
            assert config.flavour is None
            width = config.n_embd
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return self.down(F.gelu(self.up(x)))
"""
LOOKING_AHEAD = """
    class Attention(nn.Module):
        def __init__(self, dim, num_heads):
            super().__init__()
            self.heads, self.qkv, self.proj = num_heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
"""
ALWAYS_ADDED = """
    def attention(q, k, v, mask):
        return (q @ k.mT / math.sqrt(q.shape[-1]) + mask).softmax(-1) @ v
"""


def drafted(folder: Path, code: str) -> Draft:
    """Draft for one module."""
    (folder / "theirs.py").write_text(textwrap.dedent(HEAD) + textwrap.dedent(code))
    return draft(RunRequest(str(folder / "theirs.py"), config=Config()), {})


def tables(found: Draft):
    """Return the declarations of components, each of which reproduces the definition's numbers."""
    assert all(proposal.matched for proposal in found.proposals)
    return tomllib.loads(found.text())["components"]


def test_sizes_that_are_numbers_of_the_module_are_set_there(tmp_path):
    """Would break if code that reads a width from its module were judged at that one alone, or not at all."""
    attention = tables(drafted(tmp_path, LECTURE))["MultiHeadAttention"]
    assert attention["construct"] == {"num_heads": "num_heads", "head_size": "d_model // num_heads"}
    assert attention["limits"] == {"tokens": {"max": 256}}
    assert attention["globals"].items() >= {"n_embd": "d_model", "block_size": 256}.items()


@pytest.mark.full(guard="test_sequence_first_code_is_found_by_rows_that_depend_on_one_another")
def test_a_model_that_gives_the_last_position_alone_is_called_with_targets(tmp_path):
    """Would break if nanoGPT's shortcut at the head left the whole model unjudged."""
    found = drafted(tmp_path, LAST_ONLY)
    assert tables(found)["TinyTransformerLM"]["call"] == ["ids", {"targets": "ids"}]
    assert any("only one position" in doubt for doubt in found.doubts())


def test_sequence_first_code_is_found_by_rows_that_depend_on_one_another(tmp_path):
    """Would break if another order of axes looked like attention over the batch, a mistake."""
    attention = tables(drafted(tmp_path, SEQUENCE_FIRST))["MultiHeadAttention"]
    assert attention["layout"] == "sequence first"
    assert attention["mask"] == {"kinds": ["bool"], "true": "hide"}


def test_norms_that_add_one_to_their_weights_are_a_choice(tmp_path):
    """Would break if 1 + weight as a scale, initialized at zero, were taken for a wrong norm."""
    found = drafted(tmp_path, MINUS_ONE)
    assert "weights" not in tables(found)["TransformerBlock"]
    assert 'norm = "rmsnorm"\nnorm_weight = "offset"' in found.text()


@pytest.mark.full(guard="test_norms_that_add_one_to_their_weights_are_a_choice")
def test_norms_that_add_one_and_begin_at_one_are_not_declared_as_stored_otherwise(tmp_path):
    """Would break if a doubled scale were declared as a storage format: it is a choice whose start a clause judges."""
    found = drafted(tmp_path, MINUS_ONE.replace("torch.zeros", "torch.ones"))
    (block,) = (proposal for proposal in found.proposals if proposal.component == "TransformerBlock")
    assert "weights" not in block.table
    assert 'norm_weight = "offset"' in found.text()


def test_an_unknown_setting_is_none_where_false_is_refused(tmp_path):
    """Would break if one unknown setting kept a configured component from being built."""
    construct = tables(drafted(tmp_path, NOBODY_KNOWS))["FeedForward"]["construct"]
    assert construct["config"]["arguments"] == {"flavour": "None", "n_embd": "d_model"}


def test_a_mask_that_is_always_added_is_passed_in_every_call(tmp_path):
    """Would break if a function without a default for its mask could not be called without one."""
    attention = tables(drafted(tmp_path, ALWAYS_ADDED))["ScaledDotProductAttention"]
    assert attention["call"][-1] == {"mask": "mask"}
    assert attention["mask"] == {"kinds": ["float"]}


@pytest.mark.full(guard="test_sequence_first_code_is_found_by_rows_that_depend_on_one_another")
def test_a_block_that_looks_ahead_behind_a_norm_is_not_called_causal(tmp_path):
    """Would break if later inputs were changed by a constant, which a norm removes."""
    code = MINUS_ONE.replace("is_causal=True", "is_causal=False").replace("RMSNorm(dim)", "nn.LayerNorm(dim)")
    found = drafted(tmp_path, code)
    text = found.text().partition("[components.TransformerBlock]")[2]
    assert '# causal = "never"' in text


def test_choices_are_found_in_code_that_looks_ahead_and_it_stays_a_mistake(tmp_path):
    """Would break if such code were compared with causal definitions only: no choice gives its numbers then."""
    found = drafted(tmp_path, LOOKING_AHEAD)
    assert tables(found)["MultiHeadAttention"]["causal"] == "always"
    assert tomllib.loads(found.text())["variant"] == {"qkv_bias": True, "output_bias": True}
    assert '# causal = "never"' in found.text()


def test_components_that_a_constructor_takes_are_built_for_it():
    """Would break if a layer that takes its parts as arguments could not be constructed."""
    item = Item("theirs:EncoderLayer", "class", arguments("size", "self_attn", "feed_forward", "dropout"), None, None)
    parts = {
        "MultiHeadAttention": {"path": "theirs:Attention", "construct": {"h": "num_heads", "d": "d_model"}},
        "FeedForward": {"path": "theirs:Mlp", "construct": {"d": "d_model", "wide": "d_ff"}},
    }
    way = ways(COMPONENTS["TransformerBlock"], item, [], parts)[0]
    assert way.construct["self_attn"] == {
        "object": "theirs:Attention", "arguments": {"h": "num_heads", "d": "d_model"},
    }  # fmt: skip
    assert way.construct["feed_forward"]["arguments"] == {"d": "d_model", "wide": "d_ff"}
    assert (way.construct["size"], way.construct["dropout"]) == ("d_model", "dropout")


def test_a_reason_is_given_for_a_namesake_that_cannot_be_the_component():
    """Would break if nothing were said about what to declare for code that cannot be bound."""
    attention = Item("theirs:Attention", "class", arguments("args"), arguments("x", "freqs_cos", "freqs_sin"), None)
    said = near_miss(COMPONENTS["MultiHeadAttention"], [attention], [], [])
    assert "theirs:Attention" in said
    assert "freqs_cos, freqs_sin" in said
    function = Item("theirs:mha", "function", None, arguments("x", "c_attn", "c_proj", "n_head"), None)
    assert "its weights as arguments" in near_miss(COMPONENTS["MultiHeadAttention"], [function], [], [])
    block = Item("theirs:block", "function", None, arguments("x", "mlp", "attn", "ln_1", "ln_2", "n_head"), None)
    assert "its weights as arguments" in near_miss(COMPONENTS["TransformerBlock"], [block], [], [])
    table = Item("theirs:sinusoid", "function", None, arguments("n", "d"), None)
    assert "takes no input" in near_miss(COMPONENTS["PositionalEncoding"], [table], [], [])
    maker = Item("theirs:mha", "function", None, arguments("h", "d_model", "dropout"), None)
    assert near_miss(COMPONENTS["MultiHeadAttention"], [maker], [], []) == ""
    assert near_miss(COMPONENTS["FeedForward"], [attention, function], [], []) == ""


def arguments(*names):
    return [{"name": n, "kind": "positional", "required": True, "default": None, "positional_only": False}
            for n in names]  # fmt: skip


def test_older_variants_do_not_mislead_the_search_for_newer_ones():
    """Would break if assignments of weights stayed sorted by their distances to variants without ALiBi."""
    slopes = Path(__file__).parents[2] / "right_wild" / "alibi_slopes"
    found = tomllib.loads(draft(RunRequest(impl=str(slopes), config=Config()), {}).text())
    assert found["variant"] == {"qkv_bias": True, "output_bias": True, "positions": "alibi"}
