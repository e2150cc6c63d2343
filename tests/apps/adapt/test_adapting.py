"""conform adapt: foreign names are found and proven, and no mistake is declared away."""

import shutil
import tomllib
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import adapt, draft
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.toml_text import table_text
from conformkit.conformance.discovery.bench import Shown, missing_setting
from conformkit.conformance.discovery.calling import call_of
from conformkit.conformance.discovery.candidates import near_miss
from conformkit.conformance.discovery.construction import ways
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import meant
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import COMPONENTS

ROOT = Path(__file__).resolve().parents[3]
FOREIGN = ROOT / "examples/foreign_names"


def foreign(folder: Path, **changes: str) -> Path:
    """Copy the package with foreign names, without its conform.toml and with some texts replaced."""
    package = folder / "their_gpt"
    shutil.copytree(FOREIGN, package, ignore=shutil.ignore_patterns("conform.toml", "__pycache__"))
    source = (package / "gpt.py").read_text()
    for old, new in (change.split(" => ") for change in changes.values()):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (package / "gpt.py").write_text(source)
    return package


def parameter(name, *, required=True, default=None, kind="positional"):
    return {"name": name, "kind": kind, "required": required, "default": default, "positional_only": False}


def item(name, construct, call=("x",), kind="class", config=None):
    return Item(f"theirs:{name}", kind, [parameter(n) for n in construct], [parameter(n) for n in call], config)


@pytest.mark.full(guard="test_a_mask_called_as_in_the_contract_keeps_its_meaning")
def test_foreign_names_without_a_file_are_adapted_and_conform(tmp_path):
    """Would break if a component, an argument, a settings object, an output or a choice were not found."""
    found = adapt(RunRequest(str(foreign(tmp_path))), {})
    assert {p.component: p.table["path"].rpartition(":")[2] for p in found.draft.proposals} == {
        "ScaledDotProductAttention": "attend", "MultiHeadAttention": "Mixer", "FeedForward": "Mlp",
        "PositionalEncoding": "Waves", "TransformerBlock": "Layer", "TinyTransformerLM": "Gpt",
    }  # fmt: skip
    declared = tomllib.loads(found.draft.text())
    assert declared["variant"] == {
        "activation": "gelu_tanh", "qkv_bias": True, "output_bias": True, "sinusoid_layout": "halves", "tied": True,
    }  # fmt: skip
    assert declared["components"]["ScaledDotProductAttention"]["mask"]["true"] == "hide"
    assert found.conforms


@pytest.mark.full(guard="test_a_mask_called_as_in_the_contract_keeps_its_meaning")
def test_scores_divided_by_the_whole_width_are_not_declared_away(tmp_path):
    """Would break if a draft made code conform whose scores are scaled by d_k."""
    package = foreign(tmp_path, scale="math.sqrt(query.shape[-1]) => query.shape[-1]")
    found = adapt(RunRequest(str(package)), {})
    assert {p.component for p in found.draft.proposals} >= {"ScaledDotProductAttention", "MultiHeadAttention"}
    assert "no variant of the definition gives its numbers" in found.draft.text()
    assert found.report is not None
    broken = {r.clause.id for r in found.report.results if r.verdict.red}
    assert "SDPA-SCALE" in broken
    assert "MHA-PARAM-COUNT" not in broken
    assert not found.conforms


@pytest.mark.full(guard="test_an_unsupported_single_head_is_left_as_a_mistake_and_reported")
def test_a_missing_causal_mask_is_left_as_a_mistake(tmp_path):
    """Would break if the draft declared a model without a mask as never causal."""
    no_mask, no_flag = "None if self.config.bidirectional else later => None", "    bidirectional: bool = False\n => "
    package = foreign(tmp_path, mask=no_mask, flag=no_flag)
    found = adapt(RunRequest(str(package)), {})
    declared = tomllib.loads(found.draft.text())["components"]
    assert {declared[name]["causal"] for name in ("MultiHeadAttention", "TransformerBlock")} == {"always"}
    assert '# causal = "never"' in found.draft.text()
    assert not found.conforms


def test_nothing_of_the_contract_is_a_sentence(tmp_path):
    """Would break if an empty draft were taken for a proven one."""
    (tmp_path / "nothing.py").write_text("def hello(name):\n    return name\n")
    with pytest.raises(LoadFailure, match="it contains nothing that looks like a component"):
        adapt(RunRequest(str(tmp_path / "nothing.py")), {})


def test_a_folder_without_code_is_reported_as_by_conform_run(tmp_path):
    """Would break if the author of an empty package were asked where a component is."""
    with pytest.raises(LoadFailure, match="there is no Python file in") as caught:
        adapt(RunRequest(str(tmp_path)), {})
    assert "conform init" in caught.value.advice[0]


def test_a_stub_is_reported_as_not_implemented():
    """Would break if the author of an unwritten part were told to declare its call."""
    stub = item("TransformerBlock", ["d_model"])
    refused = ["theirs:TransformerBlock: NotImplementedError"]
    said = near_miss(COMPONENTS["TransformerBlock"], [stub], [], refused)
    assert said == "theirs:TransformerBlock is not implemented yet"


def test_the_same_argument_means_one_thing():
    """Would break if two arguments were given the same size, or a negated flag its opposite."""
    construct = ways(COMPONENTS["MultiHeadAttention"], item("A", ["dim", "n_heads", "bidirectional"]), [])[0].construct
    assert construct == {"dim": "d_model", "n_heads": "num_heads", "bidirectional": "not causal"}
    assert meant("attn_pdrop", ["dropout"]) == "dropout"


def test_arguments_that_names_leave_open_are_tried_in_every_order():
    """Would break if only the first order were tried."""
    found = ways(COMPONENTS["FeedForward"], item("F", ["alpha", "omega"]), [])
    assert [way.construct for way in found] == [
        {"alpha": "d_model", "omega": "d_ff"}, {"alpha": "d_ff", "omega": "d_model"},
    ]  # fmt: skip
    assert all("by trying" in doubt for way in found for doubt in way.doubts)


def test_a_settings_object_is_built_from_what_its_class_takes():
    """Would break if an object's arguments were passed to the component itself."""
    settings = Item("theirs:Config", "class", [parameter("n_embd"), parameter("n_head")], None, None)
    (way,) = ways(COMPONENTS["MultiHeadAttention"], item("A", ["config"]), [settings])
    inner = {"object": "theirs:Config", "arguments": {"n_embd": "d_model", "n_head": "num_heads"}}
    assert way.construct == {"config": inner}


def test_what_settings_code_asks_for_is_read_off_its_errors():
    """Would break if a dictionary of settings without a class were not found."""
    assert missing_setting(ImplementationFailure("raised", "KeyError", "'emb_dim'", "")) == "emb_dim"
    gone = "'types.SimpleNamespace' object has no attribute 'n_head'"
    assert missing_setting(ImplementationFailure("raised", "AttributeError", gone, "")) == "n_head"
    assert missing_setting(ImplementationFailure("raised", "ValueError", "'emb_dim'", "")) == ""


def test_queries_keys_and_values_are_the_same_input():
    """Would break if self-attention that takes three arguments got one."""
    signature = [parameter(n) for n in ("query", "key", "value")] + [parameter("attn_mask", required=False)]
    call = call_of(COMPONENTS["MultiHeadAttention"], signature)
    assert call.written(mask=True) == ["x", "x", "x", {"attn_mask": "mask"}]


def test_the_parts_of_what_comes_back_are_read_off_its_description():
    """Would break if the output were searched under a nested name, or the rest of a tuple were lost."""
    assert Shown((), (), "dict(hidden: tensor, scores: tuple(tensor, None))").keys() == ["hidden", "scores"]
    assert Shown((), (), "tuple(tensor, dict(a: tensor))").keys() == [0, 1]
    assert Shown((), (), "tensor").keys() == []


def test_what_is_tried_is_what_is_written():
    """Would break if a value were quoted in a way that the parser does not accept."""
    table = {"path": "a.b:C", "construct": {"cfg": {"object": "a.b:D", "arguments": {"n": "d_model", "act": "'gelu'"}}},
             "call": ["x", {"use_cache": False}], "mask": {"kinds": ["bool"]}}  # fmt: skip
    config = parse_config(table_text("MultiHeadAttention", table)).component("MultiHeadAttention")
    assert config.construct.template({"d_model": 8})[1]["cfg"]["kwargs"] == {"n": 8, "act": "gelu"}
    assert config.mask.kinds == ("bool",)


@pytest.mark.full(guard="test_what_is_named_and_is_not_that_is_a_sentence")
def test_what_is_named_in_a_library_is_all_that_is_looked_at():
    """Would break if a hint next to a mask were taken for the mask, or True for its opposite."""
    found = adapt(RunRequest("torch"), {"MultiHeadAttention": "torch.nn:MultiheadAttention"})
    declared = tomllib.loads(found.draft.text())
    table = declared["components"]["MultiHeadAttention"]
    assert set(declared["components"]) == {"MultiHeadAttention"}
    assert declared["variant"] == {"qkv_bias": True, "output_bias": True}
    assert table["mask"] == {"kinds": ["bool", "float"], "true": "hide"}
    assert table["causal"] == "mask"
    assert found.conforms


def test_a_dictionary_of_settings_is_found_out_by_what_the_code_asks_for(tmp_path):
    """Would break if settings without a class had to be declared by hand."""
    (tmp_path / "book.py").write_text(
        "from torch import nn\n\n\n"
        "class FeedFwd(nn.Module):\n"
        "    def __init__(self, cfg):\n"
        "        super().__init__()\n"
        "        wide = 4 * cfg['emb_dim']\n"
        "        up, down = nn.Linear(cfg['emb_dim'], wide), nn.Linear(wide, cfg['emb_dim'])\n"
        "        self.layers = nn.Sequential(up, nn.ReLU(), down)\n"
        "        self.drop = nn.Dropout(cfg['drop_rate'])\n\n"
        "    def forward(self, x):\n"
        "        return self.drop(self.layers(x))\n"
    )
    found = draft(RunRequest(str(tmp_path / "book.py"), config=Config()), {})
    (proposal,) = found.proposals
    assert proposal.table["construct"] == {"cfg": {"emb_dim": "d_model", "drop_rate": "dropout"}}
    assert proposal.table["limits"] == {"d_ff": "4 * d_model"}
    assert [(c.choice, c.actual) for c in found.choices] == [("activation", "relu")]


def test_what_is_named_and_is_not_that_is_a_sentence():
    """Would break if a component that the user named were left out silently."""
    with pytest.raises(LoadFailure, match="could not be constructed and called as MultiHeadAttention"):
        adapt(RunRequest("torch"), {"MultiHeadAttention": "torch.nn:Conv3d"})


def test_a_script_next_to_the_code_is_not_run(tmp_path):
    """Would break if the search for names started a training loop."""
    package = foreign(tmp_path)
    marker = tmp_path / "trained"
    loop = f"for step in range(3):\n    open({str(marker)!r}, 'a').write('step')\n"
    (package / "train.py").write_text(f"from .gpt import Gpt\n\n\ndef main():\n    return Gpt\n\n\n{loop}")
    found = draft(RunRequest(str(package), config=Config()), {})
    assert not marker.exists()
    assert found.left_out == ["their_gpt.train is a script and was not imported"]


def test_a_mask_called_as_in_the_contract_keeps_its_meaning(tmp_path):
    """Would break if a mask read the wrong way round were declared as intended."""
    (tmp_path / "tiny.py").write_text(
        "import math\n\nimport torch\n\n\n"
        "def attend(q, k, v, mask=None):\n"
        "    scores = q @ k.mT / math.sqrt(q.shape[-1])\n"
        "    if mask is not None:\n"
        "        scores = scores.masked_fill(mask, -torch.inf)\n"
        "    return scores.softmax(-1) @ v\n"
    )
    found = adapt(RunRequest(str(tmp_path / "tiny.py")), {})
    assert '# mask = { true = "hide" }' in found.draft.text()
    assert "mask" not in tomllib.loads(found.draft.text())["components"]["ScaledDotProductAttention"]
    assert not found.conforms


def test_a_missing_named_place_is_reported_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "good.py"
    path.write_text("class Attention: ...")
    with pytest.raises(LoadFailure, match=r"^its definitions cannot be read: good has no Nope$"):
        adapt(RunRequest(str(path)), {"MultiHeadAttention": "good:Nope"})
