from dataclasses import fields, replace

import pytest

from conformkit.conformance.apps.grade.policy import Allowed, ArchiveLimits, Losses, Policy, RunLimits
from conformkit.conformance.apps.grade.policy_file import READY, abilities, example, parse_policy, read_policy, ready
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.spec.clauses import clauses

GROUP = '[[groups]]\nname = "a"\npoints = 1\nclauses = [{}]\n'


def problem(text, folder=None):
    with pytest.raises(ConfigError) as caught:
        parse_policy(text, *([folder / "policy.toml"] if folder else []))
    return str(caught.value)


def test_the_shipped_example_can_be_used_and_shows_the_defaults():
    shown = parse_policy(example())
    assert (shown.limits, shown.archive, shown.losses, shown.allowed) == (
        RunLimits(), ArchiveLimits(), Losses(), Allowed(),
    )  # fmt: skip
    standard = Policy()
    for name in ("profile", "level", "seed", "hints", "isolation", "impl", "conform"):
        assert getattr(shown, name) == getattr(standard, name)
    assert shown.max_points == 100.0


def test_the_example_shows_every_key():
    text = example()
    tables = (RunLimits, ArchiveLimits, Losses, Allowed)
    keys = {f.name for kind in tables for f in fields(kind)} | {f.name for f in fields(Policy)}
    missing = {key for key in keys if f"{key} = " not in text and key not in {"groups", "allowed", "limits"}}
    assert missing - {"archive", "losses", "course"} == set()  # a course needs files


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('levle = "MUST"', ["line 1: levle", "nearest: level"]),
        ('level = "must"', ["line 1: level", "nearest: MUST"]),
        ('\nprofile = "cor"', ["line 2: profile", "nearest: core"]),
        ("hints = 4", ["line 1: hints: it is 4, expected 0 to 3"]),
        ("seed = -1", ["line 1: seed"]),
        ('seed = "hiden"', ["line 1: seed", "nearest: hidden"]),
        ('isolation = "none"', ["line 1: isolation", "sandbox"]),
        ('impl = "../x"', ["line 1: impl"]),
        ('forbidden = ["torch nn"]', ["line 1: forbidden[0]", "dotted"]),
        ('required = ["SDPA-SCALES"]', ['required[0]: there is no clause "SDPA-SCALES"', "nearest: SDPA-SCALE"]),
        (GROUP.format('"SPDA-*"'), ['line 4: groups[0].clauses[0]: there is no clause "SPDA-*"', "nearest: SDPA"]),
        (GROUP.format(""), ["line 4: groups[0].clauses: the list is empty"]),
        ('[[groups]]\nname = "a"\npoints = 1', ["groups[0]: a group needs its clauses"]),
        ('[[groups]]\nname = "a b"\npoints = 1\nclauses = ["SDPA"]', ["line 2: groups[0].name"]),
        (GROUP.format('"SDPA"').replace("points = 1", "points = 0"), ["line 3: groups[0].points"]),
        ("groups = []", ["groups: no group gives any points"]),
        (2 * GROUP.format('"SDPA-SCALE"'), ['two groups are called "a"']),
        (GROUP.format('"SDPA-SCALE"') + GROUP.format('"SDPA"').replace('"a"', '"b"'), ["line 8", "in the group"]),
        ('allow = { variant = { nrom = ["rmsnorm"] } }', ["allow.variant.nrom", "nearest: norm"]),
        ('allow = { variant = { norm = ["rms"] } }', ["allow.variant.norm[0]", "layernorm, rmsnorm"]),
        ('allow = { lacking = ["masc"] }', ["allow.lacking[0]", "nearest: masks"]),
        ('allow = { dtypes = ["float63"] }', ["allow.dtypes[0]", "nearest: float64"]),
        ("allow = { tolerance = 1.0 }", ["allow.tolerance: there is no key"]),
        ("limits = { memory = 4 }", ["limits.memory: it is a whole number, expected a string"]),
        ('limits = { memory = "4 GB" }', ["limits.memory", "512 MiB"]),
        ("limits = { second = 4 }", ["limits.second", "nearest: seconds"]),
        ("archive = { ratio = 1 }", ["archive.ratio: it is 1, expected 2"]),
        ('lose = { crash = "al" }', ["lose.crash", "nearest: all"]),
        ('conform = "class.toml"', ["conform: there is no file"]),
        ("title = ", ["line 1: not TOML"]),
    ],
    ids=lambda value: value.strip()[:30] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_line_and_what_was_meant(text, words):
    said = problem(text)
    assert said.startswith("policy.toml")
    assert all(word in said for word in words), said


def test_a_prefix_picks_what_counts_at_the_level_and_a_whole_id_counts_at_any():
    should = next(c for c in clauses().values() if c.level == "SHOULD" and c.profile == "core")
    assert should.id not in parse_policy(GROUP.format(f'"{should.prefix}-*"')).groups[0].clauses
    assert should.id in parse_policy(GROUP.format(f'"{should.id}"')).groups[0].clauses
    at_should = parse_policy('level = "SHOULD"\n' + GROUP.format(f'"{should.prefix}"'))
    assert should.id in at_should.groups[0].clauses


@pytest.mark.parametrize("profile", ["core", "lm", "seq2seq", "vit"])
def test_without_groups_every_clause_about_what_must_be_exported_counts_once(profile):
    groups = parse_policy(f'profile = "{profile}"').groups
    counted = [name for group in groups for name in group.clauses]
    components = {clauses()[name].component for name in counted}
    assert len(counted) == len({*counted})
    assert sum(group.points for group in groups) == pytest.approx(100)
    assert {group.credit for group in groups} == {"parts"}
    if profile == "core":
        assert {"MultiHeadAttention", "all"} <= components
        assert not components & {"SelfAttention", "FeedForward"}


@pytest.mark.parametrize("name", READY)
def test_a_ready_policy_is_one_and_caps_what_fails(name):
    policy = ready(name)
    assert policy.max_points == 100
    assert all(0 < group.cap < 1 for group in policy.groups)


def test_the_ready_policies_are_ordered_by_what_a_failure_leaves():
    caps = [ready(name).groups[0].cap for name in ("strict", "course", "encouraging")]
    assert caps == sorted(caps)
    assert ready("course").groups == parse_policy("").groups


@pytest.mark.parametrize("text", ["cap = 1.5", "cap = -0.1", 'cap = "half"'])
def test_a_cap_is_a_share(text):
    assert "line 1: cap" in problem(text)


def test_the_digest_depends_on_content_and_not_on_form():
    text = GROUP.format('"SDPA-SCALE", "SDPA-FORMULA"')
    policy = parse_policy(text)
    assert parse_policy("# a comment\n" + text.replace('"SDPA-SCALE", ', '"SDPA-SCALE",')).digest() == policy.digest()
    changed = [
        replace(policy, hints=2), replace(policy, seed=1), replace(policy, limits=RunLimits(seconds=9)),
        replace(policy, groups=(replace(policy.groups[0], points=2),)), replace(policy, isolation="process"),
        replace(policy, allowed=Allowed(lacking=("masks",))), replace(policy, conform="x"),
    ]  # fmt: skip
    assert len({p.digest() for p in [policy, *changed]}) == len(changed) + 1


def test_a_conform_toml_next_to_the_policy_is_read_and_checked(tmp_path):
    (tmp_path / "policy.toml").write_text('conform = "class.toml"')
    (tmp_path / "class.toml").write_text('[implementation]\nmodule = "solution"')
    assert "solution" in read_policy(tmp_path / "policy.toml").conform
    (tmp_path / "class.toml").write_text("[implementation]\nmodul = 1")
    with pytest.raises(ConfigError, match=r"class\.toml, line 2"):
        read_policy(tmp_path / "policy.toml")


def test_an_ability_that_the_contract_leaves_open_needs_no_policy():
    assert "float-masks" in abilities("core")
    assert "nearest" not in problem('allow = { lacking = ["norm"] }')
    assert not {"weights", "norm"} & set(abilities("core"))
