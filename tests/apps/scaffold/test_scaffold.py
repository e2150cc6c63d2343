import ast

import pytest

from conformkit.conformance.apps.scaffold.definitions import CHOICES, DEFINITIONS
from conformkit.conformance.apps.scaffold.scaffold import obstacle, package, write_package
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.milestones import next_step
from conformkit.conformance.report.terminal import render
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level, clauses, clauses_of, select
from conformkit.spec.components import COMPONENTS, components_of
from conformkit.spec.profiles import MILESTONE_PROFILES
from conformkit.spec.sources import sources
from conformkit.spec.tools import TOOLS, tools_of
from conformkit.spec.variants import CANONICAL


def exports(files):
    """Return classes and functions of all modules by name."""
    trees = [ast.parse(text) for name, text in files.items() if name != "__init__.py"]
    return {node.name: node for tree in trees for node in tree.body if hasattr(node, "name")}


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_every_part_of_the_contract_is_there_with_types_and_what_it_says(framework):
    found = exports(package("mypkg", framework, "lm"))
    begun = {name for name, tool in tools_of("lm").items() if tool.begin}
    assert set(found) == {c.export for c in COMPONENTS.values()} | begun
    assert set(tools_of("lm")) - begun == {"balance_loss"}
    described(found)


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_the_tools_of_an_encoder_decoder_are_there_and_no_others(framework):
    found = exports(package("mypkg", framework, "seq2seq"))
    assert set(found) & set(TOOLS) == set(tools_of("seq2seq"))
    described({name: node for name, node in found.items() if name in TOOLS})


def described(found):
    """Every part has a docstring and types."""
    for node in found.values():
        assert ast.get_docstring(node)
        for function in (n for n in ast.walk(node) if isinstance(n, ast.FunctionDef)):
            arguments = [a for a in function.args.args if a.arg != "self"]
            assert all(a.annotation is not None for a in arguments), (node.name, function.name)
            assert function.returns is not None


def test_every_binding_clause_of_a_separate_group_is_named_in_its_docstring():
    found = exports(package("mypkg"))
    for component in COMPONENTS.values():
        own = [c.id for c in clauses_of("core").values() if c.prefix == component.prefix and c.level == "MUST"]
        assert own
        assert all(name in ast.get_docstring(found[component.export]) for name in own if name.startswith("MHA"))


ADVICE = {
    "scaled_dot_product_attention": ("ERRH-VALUES-LEFT", "ERRH-MASK-CUT"),
    "MultiHeadAttention": ("ERRH-DIVISIBLE",),
    "PositionalEncoding": ("PE-OVERLONG-REFUSED",),
    "TinyTransformerLM": ("LM-OOB-NEGATIVE", "ERRH-OVERLONG"),
    "clip_grad_norm": ("OPT-CLIP-PRENORM",),
    "evaluate": ("METRIC-EVAL-STAYS",),
    "Transformer": ("S2S-MASKS-BUILT",),
    "collate": ("S2SDATA-LONGEST",),
    "create_padding_mask": ("PAD-BOOL",),
}
"""Clauses that advise, by the part whose stub speaks of the same."""


@pytest.mark.parametrize("name", ADVICE)
def test_a_stub_says_should_where_the_law_does(name):
    """Would break if a stub promised what the law only advises."""
    found = exports(package("mypkg", profile="lm")) | exports(package("mypkg", profile="seq2seq"))
    assert all(clauses()[one].level is Level.SHOULD for one in ADVICE[name])
    assert "should" in ast.get_docstring(found[name])


@pytest.mark.parametrize("framework", ["torch", "numpy"])
@pytest.mark.parametrize("profile", ["core", "lm"])
def test_a_run_on_it_calls_nothing_wrong_and_begins_with_attention(tmp_path, framework, profile):
    write_package(tmp_path / "stubs_of_mine", package("stubs_of_mine", framework, profile))
    report = run(RunRequest(impl=str(tmp_path / "stubs_of_mine"), profile=profile, diagnose=False))
    assert {r.verdict for r in report.results} <= {Verdict.NOT_IMPLEMENTED, Verdict.NOT_APPLICABLE}
    assert sum(r.unfinished for r in report.results) > 90
    assert not report.conforms
    step = next_step(report)
    assert (step.milestone, step.name, step.only) == ("attention", "ScaledDotProductAttention", "SDPA")
    assert "--only SDPA\n" in render(report, 200)  # of profile core, even if lm was requested


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [
        ("encoder", "segments: Tensor | None = None, mask: Tensor | None = None\n    ) -> tuple[Tensor, Tensor]:"),
        ("vit", "def forward(self, images: Tensor) -> Tensor:"),
    ],
)
def test_stubs_of_an_encoder_alone_say_what_a_call_takes_and_returns(tmp_path, profile, wanted):
    """Would break if a second result had a method of its own, or an input without a type were a number."""
    files = package("mypkg", profile=profile)
    assert any(wanted in text for text in files.values())
    assert set(exports(files)) >= {part.export for part in components_of(profile).values()}
    write_package(tmp_path / "stubs_of_mine", files)
    report = run(RunRequest(impl=str(tmp_path / "stubs_of_mine"), profile=profile, diagnose=False))
    assert {r.verdict for r in report.results} == {Verdict.NOT_IMPLEMENTED}


def test_stubs_of_profile_paths_are_those_of_the_model():
    """Would break if the other name of the model in that profile were taken for a contract of its own."""
    assert set(exports(package("mypkg", profile="paths"))) == {"TinyTransformerLM"}


@pytest.mark.parametrize("profile", MILESTONE_PROFILES)
def test_stubs_of_an_encoder_decoder_have_all_that_its_milestones_require(profile):
    found = set(exports(package("mypkg", profile="seq2seq")))
    own = set(exports(package("mypkg", profile=profile)))
    named = {clause.component for clause in clauses_of(profile).values()}
    assert own == {part.export for part in components_of(profile).values()} | (named & set(TOOLS))
    assert own <= found


@pytest.mark.parametrize(
    ("profile", "name", "only"),
    [
        ("milestone1", "ScaledDotProductAttention", "SDPA"), ("milestone3", "PositionalEncoding", "PE"),
        ("milestone4", "CrossAttention", "XATTN"),
    ],
)  # fmt: skip
def test_a_milestone_of_them_says_what_to_start_with_and_nothing_is_missing(tmp_path, profile, name, only):
    write_package(tmp_path / "steps_of_mine", package("steps_of_mine", profile="seq2seq"))
    report = run(RunRequest(impl=str(tmp_path / "steps_of_mine"), profile=profile, diagnose=False))
    assert {r.verdict for r in report.results} <= {Verdict.NOT_IMPLEMENTED, Verdict.NOT_APPLICABLE}
    assert "does not export it" not in render(report, 200)
    step = next_step(report)
    assert (step.name, step.only, step.profile) == (name, only, profile)


@pytest.mark.parametrize("tool", [name for name, tool in TOOLS.items() if tool.begin])
def test_the_next_step_of_every_tool_can_be_judged_alone(tool):
    results = [
        Result(clause, Verdict.NOT_IMPLEMENTED, unfinished=clause.component == tool)
        for clause in clauses_of(TOOLS[tool].profile).values()
    ]
    report = Report(
        "x", "", "torch", profile=TOOLS[tool].profile, results=results, stubs={tool: "x.py:1"}, complete=True,
    )  # fmt: skip
    step = next_step(report)
    assert step.name == tool
    assert select((step.only,), TOOLS[tool].profile)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my-pkg", "not a package name"), ("class", "a keyword of Python"), ("json", "installed module"),
        ("numpy", "installed module"), ("there", "not empty"), ("file", "is an existing file"),
        ("nowhere/mypkg", "mkdir -p"), ("", "not empty"),
    ],
)  # fmt: skip
def test_an_obstacle_is_reported(tmp_path, name, words):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.py").touch()
    (tmp_path / "file").touch()
    home = tmp_path / "there" if not name else tmp_path
    assert words in obstacle(home / name)


def test_an_empty_folder_is_not_in_the_way(tmp_path):
    (tmp_path / "mypkg").mkdir()
    assert obstacle(tmp_path / "mypkg") == ""
    write_package(tmp_path / "mypkg", {"__init__.py": ""})
    assert [path.name for path in (tmp_path / "mypkg").iterdir()] == ["__init__.py"]


def test_a_failure_half_way_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        write_package(tmp_path / "mypkg", {"a.py": "", "no/such/b.py": ""})
    assert list(tmp_path.iterdir()) == []


def test_a_file_created_meanwhile_stays(tmp_path):
    (tmp_path / "mypkg").mkdir()
    mine = tmp_path / "mypkg" / "mine.py"
    mine.write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        write_package(tmp_path / "mypkg", {"a.py": ""})
    assert mine.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "mypkg"]


def test_a_stub_says_what_it_computes_in_the_canonical_variant():
    """Would break if the canonical variant changed and the words in the stubs stayed."""
    found = exports(package("mypkg"))
    assert set(DEFINITIONS) == set(found)
    assert all("Computes:" in ast.get_docstring(node) for node in found.values())
    assert {name: getattr(CANONICAL, name) for name in CHOICES} == dict(CHOICES)
    assert 'placement = "post"' in ast.get_docstring(ast.parse(package("mypkg")["__init__.py"]))


@pytest.mark.parametrize("profile", ["core", "lm", "seq2seq"])
def test_a_stub_cites_no_source_that_only_this_project_has(profile):
    private = [key for key, source in sources().items() if source.private]
    texts = [ast.get_docstring(node) for node in exports(package("mypkg", profile=profile)).values()]
    cited = [line for text in texts for line in text.splitlines() if "Source:" in line]
    assert cited
    assert private
    assert not [line for line in cited if any(key in line for key in private)]
