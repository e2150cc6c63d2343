"""conform adapt where sizes are named for one side, as in the settings of encoder-decoders of transformers."""

import textwrap
import tomllib

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.calls import call_of
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.construction import ways
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import meant
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import component

MODEL = """
    from dataclasses import dataclass

    import torch
    from torch import nn


    @dataclass
    class ModelConfig:
        vocab_size: int = 100
        decoder_vocab_size: int | None = None
        d_model: int = 64
        encoder_layers: int = 6
        encoder_attention_heads: int = 8
        encoder_ffn_dim: int = 128
        decoder_layers: int = 6
        decoder_attention_heads: int = 8
        decoder_ffn_dim: int = 128
        dropout: float = 0.1
        pad_token_id: int = 1


    class Seq2SeqTransformer(nn.Module):
        def __init__(self, config: ModelConfig):
            super().__init__()
            c = config
            assert c.decoder_vocab_size in (None, c.vocab_size), "one embedding for both sides"
            self.shared = nn.Embedding(c.vocab_size, c.d_model)
            side = dict(activation="gelu", batch_first=True, norm_first=True, dropout=c.dropout)
            enc = nn.TransformerEncoderLayer(c.d_model, c.encoder_attention_heads, c.encoder_ffn_dim, **side)
            dec = nn.TransformerDecoderLayer(c.d_model, c.decoder_attention_heads, c.decoder_ffn_dim, **side)
            self.encoder = nn.TransformerEncoder(enc, c.encoder_layers, nn.LayerNorm(c.d_model))
            self.decoder = nn.TransformerDecoder(dec, c.decoder_layers, nn.LayerNorm(c.d_model))
            self.pad = c.pad_token_id

        def forward(self, input_ids, attention_mask=None, decoder_input_ids=None, decoder_attention_mask=None):
            masks = []
            for ids, mask in ((input_ids, attention_mask), (decoder_input_ids, decoder_attention_mask)):
                mask = ids == self.pad if mask is None else mask
                if mask.shape != ids.shape or mask.dtype.is_floating_point:
                    raise ValueError("a mask has a row for each text, True for padding")
                masks.append(mask != 0)
            causal = torch.ones(decoder_input_ids.shape[1], decoder_input_ids.shape[1]).triu(1).bool()
            memory = self.encoder(self.shared(input_ids), src_key_padding_mask=masks[0])
            y = self.decoder(
                self.shared(decoder_input_ids), memory, tgt_mask=causal, tgt_key_padding_mask=masks[1],
                memory_key_padding_mask=masks[0],
            )
            return y @ self.shared.weight.mT
"""


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("encoder_attention_heads", "num_heads"), ("decoder_ffn_dim", "d_ff"), ("enc_dim", "d_model"),
        ("num_decoder_attention_heads", "num_heads"), ("d_model_enc", "d_model"), ("encoder_layers", "num_layers"),
    ],
)  # fmt: skip
def test_a_size_of_one_side_is_recognized_by_the_rest_of_its_name(name, ours):
    """Would break if a side in front of a size hid what it is: `encoder_attention_heads` would keep its default."""
    assert meant(name, ("d_model", "num_heads", "d_ff", "num_layers")) == ours


@pytest.mark.parametrize("name", ["encoder", "decoder_start_token_id", "encoder_layerdrop", "_decoder"])
def test_other_names_of_one_side_are_no_sizes(name):
    """Would break if each argument that begins with a side became a size."""
    assert meant(name, ("d_model", "num_heads", "d_ff", "num_layers", "dropout")) is None


def settings(**fields: str) -> list[Item]:
    def parameter(name: str, default: str | None) -> dict[str, object]:
        return {"name": name, "kind": "keyword", "required": default is None, "default": default}

    taken = [parameter(name, default) for name, default in fields.items()]
    return [
        Item("m:Net", "class", [parameter("config", None)], [], "m:NetConfig"),
        Item("m:NetConfig", "class", taken, None, None),
    ]


def test_one_number_of_layers_is_that_of_both_sides():
    """Would break if T5's `num_layers` kept its default, or the contract's two numbers could still differ."""
    items = settings(vocab_size="32", d_model="64", num_heads="8", d_ff="32", num_layers="6")
    way = ways(component("Transformer"), items[0], items)[0]
    assert way.construct["config"]["arguments"]["num_layers"] == "num_encoder_layers"
    assert way.fixed == {"num_decoder_layers": "num_encoder_layers", "src_vocab_size": "tgt_vocab_size"}


def test_the_width_of_a_head_follows_from_the_other_sizes():
    """Would break if heads kept T5's default width of 64, which is more than a small model has."""
    items = settings(d_model="64", num_heads="8", d_kv="64")
    arguments = ways(component("CrossAttention"), items[0], items)[0].construct["config"]["arguments"]
    assert arguments["d_kv"] == "d_model // num_heads"


def test_keys_and_values_in_one_argument_are_the_memory():
    """Would break if attention of transformers got values in the place of its cache, the third argument."""
    names = ("hidden_states", "key_value_states", "past_key_values", "attention_mask")
    signature = [
        {"name": name, "kind": "positional", "required": not i, "default": "None"} for i, name in enumerate(names)
    ]
    found = call_of(signature, component("CrossAttention").inputs)
    ours = {name: getattr(value, "text", "") for name, value in found.named.items()}
    assert ours == {"hidden_states": "query", "key_value_states": "key", "attention_mask": "mask"}


@pytest.mark.full(guard="test_one_number_of_layers_is_that_of_both_sides")
def test_a_model_whose_settings_name_both_sides_is_drafted_whole(tmp_path):
    """Would break if one of its sizes kept its default, or its masks were read as those of the contract."""
    (tmp_path / "theirs.py").write_text(textwrap.dedent(MODEL))
    found = draft(RunRequest(str(tmp_path / "theirs.py"), config=Config(), profile="seq2seq"), {})
    model = tomllib.loads(found.text())["components"]["Transformer"]
    assert "skip" not in model
    assert model["limits"] == {"src_vocab_size": "tgt_vocab_size"}
    assert model["masks"] == {"src_mask": {"true": "hide"}, "tgt_mask": {"true": "hide"}}
    assert "decoder_vocab_size" not in model["construct"]["config"]["arguments"]
