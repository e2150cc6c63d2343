import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from conformkit.conformance.engine.results import Certainty, DifferingPart, Hint, LooksLike, Undeclared, Verdict
from conformkit.conformance.findings.finding import Finding, Kind, stated
from conformkit.conformance.report.terminal import IN_FULL, console, render, wants_color
from conformkit.conformance.report.terminal import write as write_report
from conformkit.spec.clauses import Level

HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]PASS[/red] \u202eevil\u202c \x9b1A\r\nconforms \ud800\x00 :smile: " + "A" * 5000


@pytest.fixture
def failed(report, result):
    return report(
        result(
            Verdict.FAIL, message="output[0, 2, 1] is 1.7312, expected 1.5046 (float64, rtol 1e-9)",
            details=("24 of 24 entries differ, worst 0.31",), where="mypkg/attention.py:31 in forward", distance=3.1e8,
        ),
        result(Verdict.BLOCKED, "MHA-HEADS", blocked_by="SDPA-SCALE"),
        result(Verdict.PASS, "SDPA-SHAPE", distance=0.25),
    )  # fmt: skip


def test_a_failure_says_what_why_next_and_how_to_repeat_it(failed):
    lines = [line.rstrip() for line in render(failed, width=120).splitlines()]
    start = lines.index("FAIL SDPA-SCALE · output[0, 2, 1] is 1.7312, expected 1.5046 (float64, rtol 1e-9)")
    assert lines[start + 1 : start + 6] == [
        "     24 of 24 entries differ, worst 0.31",
        "     fix:     divide the scores by math.sqrt(k.shape[-1])",
        "     where:   mypkg/attention.py:31 in forward",
        "     rule:    scores are divided by the square root of the key width",
        "     again:   conform run --impl mypkg --only SDPA-SCALE --seed 7",
    ]


def test_what_a_report_tells_stands_in_the_order_in_which_it_is_needed(told):
    """Would break if a kind of entry lost its words, or the verdict were not the last of them."""
    begins = re.compile(r"(conform |profile |[a-z]+: |part: |[A-Z]{4,} |In short:|passing:|\d+ clauses: |mypkg does)")
    lines = [line for line in render(told, width=400).splitlines() if begins.match(line)]
    assert [begins.match(line)[1].strip() for line in lines] == [
        "conform", "profile", "variant:", "note:", "error:", "undeclared:", "part:",
        "FAIL", "ERROR", "CRASH", "TIMEOUT", "FAIL", "ERROR", "WARN",
        "waiting:", "missing:", "next:", "again:", "passing:", "In short:",
        "FAIL", "ERROR", "CRASH", "TIMEOUT", "FAIL", "ERROR", "12 clauses:", "mypkg does",
    ]  # fmt: skip


def test_a_failure_names_the_clauses_page_where_there_are_pages(failed):
    assert "page:" not in render(failed)
    failed = replace(failed, pages="https://course.example/law")
    assert "     page:    https://course.example/law/law/attention.html#sdpa-scale" in render(failed).splitlines()


def test_a_location_is_shown_as_one_types_it_here_so_that_lines_do_not_depend_on_where_a_project_lies(
    failed, tmp_path, monkeypatch
):
    (tmp_path / "deep" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "here")
    failed = replace(failed, location=str(tmp_path / "deep" / "here" / "code" / "mypkg"))
    assert " · mypkg at code/mypkg · " in render(failed, width=400).splitlines()[0]
    failed = replace(failed, location=str(tmp_path / "deep" / "mypkg"))
    assert f" · mypkg at {tmp_path}/deep/mypkg · " in render(failed, width=400).splitlines()[0]


def test_blocked_clauses_stand_under_their_cause_and_not_as_failures(failed):
    assert "waiting: 1 until SDPA-SCALE passes" in render(failed)
    text = render(failed, verbose=True)
    assert "1 clause not checked until SDPA-SCALE passes: MHA-HEADS" in text
    assert "FAIL MHA-HEADS" not in text


@pytest.mark.parametrize("verbose", [False, True])
def test_a_reason_is_shown_whole_with_its_remedy(report, result, verbose):
    """Catches a reason that is cut in the middle of the line which would settle it."""
    others = [f"argument_{n} is none of the contract's;" for n in range(10)]
    why = " ".join([*others[:5], "write skip = true;", *others[5:]])
    text = render(report(result(Verdict.NOT_RUN, "MHA-HEADS", reason=why)), width=80, verbose=verbose)
    assert " ".join(text.split()).count("write skip = true") == 1 + verbose


def test_the_last_line_is_the_verdict_with_its_counts(failed):
    assert render(failed, width=120).splitlines()[-1] == (
        "mypkg does not conform to core (spec 1.0): 1 of 3 clauses fails; 1 blocked"
    )


@pytest.mark.parametrize("width", [40, 80, 120])
def test_hostile_text_stays_text_and_inside_the_width(report, result, width):
    broken = result(
        Verdict.ERROR, message=HOSTILE, details=(HOSTILE,), where=HOSTILE, output=HOSTILE * 3, reason=HOSTILE
    )
    other = result(Verdict.NOT_RUN, "MHA-X", reason=HOSTILE)
    text = render(
        report(broken, other, notes=[HOSTILE], missing=[HOSTILE], implementation=HOSTILE, location=HOSTILE), width
    )
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
    assert "[red]PASS[/red]" in text.replace("\n", "")
    assert ":smile:" in re.sub(r"\s+", "", text)
    assert len(text) < 40_000
    wide = [line for line in text.splitlines() if cell_len(line) > width and "again:" not in line]
    assert wide == []


def test_wide_characters_are_counted_as_two_columns(report, result):
    text = render(report(result(Verdict.FAIL, message="注意" * 60)), width=40)
    assert max(cell_len(line) for line in text.splitlines() if "注" in line) <= 40


def test_the_command_to_repeat_stays_on_one_line_however_narrow(report, result):
    text = render(report(result(Verdict.FAIL), implementation="/a/rather/long/path to/mypkg"), width=40)
    assert "again:   conform run --impl '/a/rather/long/path to/mypkg' --only SDPA-SCALE --seed 7" in text


def test_no_color_and_no_trailing_blanks_unless_asked(failed):
    text = render(failed)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\x1b[" in render(failed, color=True)


def test_a_failing_should_is_a_warning_unless_should_is_requested(report, result):
    soft = result(Verdict.FAIL, level=Level.SHOULD)
    fine = result(Verdict.PASS, "SDPA-SHAPE")
    text = render(report(soft, fine))
    assert "WARN SDPA-SCALE" in text
    assert "mypkg conforms to core (spec 1.0): 1 of 2 clauses pass, 1 warning" in text
    strict = render(report(soft, fine, level=Level.SHOULD))
    assert "FAIL SDPA-SCALE" in strict
    assert "does not conform" in strict


def test_binding_failures_come_before_warnings_in_the_order_of_the_law(report, result):
    text = render(
        report(
            result(Verdict.FAIL, "A-SOFT", level=Level.SHOULD, line=1),
            result(Verdict.FAIL, "C-LATE", line=9),
            result(Verdict.CRASH, "B-EARLY", line=2),
        )
    )
    assert text.index("CRASH B-EARLY") < text.index("FAIL C-LATE") < text.index("WARN A-SOFT")


def test_many_failures_are_shortened_but_none_is_left_out(report, result):
    many = report(*(result(Verdict.FAIL, f"SDPA-N{n}", line=n) for n in range(IN_FULL + 5)))
    assert render(many).count("again:") == IN_FULL
    assert all(f"FAIL SDPA-N{n} " in render(many) for n in range(IN_FULL + 5))
    assert "The last 5 are shortened" in render(many)
    assert render(many, verbose=True).count("again:") == IN_FULL + 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"complete": False}, "the run is incomplete, 1 clause judged"),
        ({"missing": ["TransformerBlock"]}, "missing: TransformerBlock"),
    ],
    ids=["incomplete", "missing"],
)
def test_what_is_green_but_not_whole_does_not_conform(report, result, changes, words):
    assert words in render(report(result(Verdict.PASS), **changes), width=120).splitlines()[-1]


def test_a_run_in_which_nothing_passed_does_not_conform(report, result):
    assert render(report(), 120).splitlines()[-1].endswith("no clause passed")
    assert render(report(result(Verdict.NOT_APPLICABLE)), 120).splitlines()[-1].endswith("no clause passed")


def test_quiet_prints_one_sentence(failed):
    assert render(failed, width=120, quiet=True).splitlines() == render(failed, width=120).splitlines()[-1:]


def test_verbose_lists_every_clause_with_its_distance(failed):
    text = render(failed, verbose=True, width=120)
    assert "pass SDPA-SHAPE 0.25 of the tolerance" in text
    assert "blocked MHA-HEADS" in text


def test_a_restricted_run_does_not_claim_the_whole_profile(report, result):
    assert render(report(result(), only=("SDPA",)), 120).splitlines()[-1].startswith("mypkg conforms to SDPA of core")


def test_the_color_option_wins_then_no_color_then_force_color(monkeypatch, tmp_path):
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        assert not wants_color(stream)
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert wants_color(stream)
        monkeypatch.setenv("NO_COLOR", "1")
        assert not wants_color(stream)
        assert wants_color(stream, "always")
        assert not wants_color(stream, "never")


def test_options_of_the_run_return_in_the_line_that_repeats_it(failed, tmp_path):
    with (tmp_path / "out").open("w") as stream:
        write_report(failed, console(stream, "never", 80), repeat=["--config", "my conform.toml"])
    assert "--seed 7 --config 'my conform.toml'" in (tmp_path / "out").read_text()


def test_a_name_with_line_breaks_forges_no_verdict(report, result):
    forged = "x\nx conforms to core (spec 1.0): 9 of 9 clauses pass"
    text = render(report(result(Verdict.FAIL, where=forged), implementation=forged, location=forged), width=200)
    assert not any(line.lstrip().startswith("x conforms") for line in text.splitlines())


def test_an_undeclared_choice_stands_before_the_failures_it_causes(report, result):
    relu = Undeclared("FeedForward", "activation", "gelu", "relu", "variant", 'activation = "relu"')
    text = render(report(result(Verdict.FAIL), undeclared=[relu]), width=200)
    sentence = (
        "undeclared: FeedForward: this is ReLU, the canonical variant is GELU: "
        'declare `activation = "relu"` under [variant] in conform.toml, or change it'
    )
    assert text.index(sentence) < text.index("FAIL SDPA-SCALE")
    assert "does not conform" in text.splitlines()[-1]


def test_what_was_declared_is_not_called_canonical(report, result):
    wrong = Undeclared("TransformerBlock", "placement", "post", "pre", "variant", 'placement = "pre"')
    assert "this is pre-norm, the declared variant is post-norm" in render(report(result(), undeclared=[wrong]), 200)


@pytest.fixture
def explained(report, result):
    """One failure whose mistake is known, another one without, and two clauses that are not binding."""
    hint = Hint("the weights are too sharp", "the scores", "divide by math.sqrt(k.shape[-1])")
    known = LooksLike("sdpa-no-scale", "the scores are not divided by √d_k", Certainty.EXACT, (), hint)
    return report(
        result(Verdict.FAIL, message="output[0] is 1.7, expected 1.5", looks_like=(known,)),
        result(
            Verdict.FAIL,
            "MHA-X",
            message="the shape is (2, 3), expected (2, 4)",
            component="MultiHeadAttention",
            line=9,
        ),
        result(Verdict.FAIL, "SDPA-SOFT", level=Level.SHOULD, message="soft went wrong"),
        result(Verdict.ERROR, "SDPA-MAY", level=Level.MAY, message="may went wrong"),
        result(Verdict.PASS, "SDPA-SHAPE"),
    )


def test_a_failure_says_what_happened_then_the_fix_one_line_of_evidence_and_the_rule(explained):
    """Would break if the first line said what should hold, which reads as the opposite of what happened."""
    lines = [line.strip() for line in render(explained, width=120).splitlines()]
    start = lines.index("FAIL SDPA-SCALE · the scores are not divided by √d_k")
    assert lines[start + 1 : start + 4] == [
        "fix:     divide by math.sqrt(k.shape[-1])",
        "found:   output[0] is 1.7, expected 1.5: this mistake gives exactly these numbers",
        "rule:    scores are divided by the square root of the key width",
    ]
    assert "\x1b[1mdivide by math.sqrt(k.shape[-1])" in render(explained, width=120, color=True)


def test_a_guess_stands_below_the_numbers(explained):
    first = explained.results[0]
    unsure = replace(first, looks_like=(replace(first.looks_like[0], certainty=Certainty.UNSURE),))
    text = render(replace(explained, results=[unsure]), width=120)
    assert text.index("output[0] is 1.7") < text.index("looks like:") < text.index("fix:")


def test_leads_are_given_only_where_no_failure_has_a_sure_name(explained):
    """Would break if the report began with a part that may be right, above the mistake that is known."""
    parts = {
        "ScaledDotProductAttention": DifferingPart("scale", "start with the scale"),
        "MultiHeadAttention": DifferingPart("heads", "start with the heads"),
    }
    named, other = explained.results[0], explained.results[1]
    alone = replace(explained, parts=parts, results=[other])
    assert "start with the heads" in render(alone, width=120)
    assert "start with the scale" not in render(replace(alone, results=[named]), width=120)
    assert "start with the heads" not in render(replace(alone, results=[named, other]), width=120)  # below comes first


def test_the_last_screen_of_a_failing_run_says_all_that_is_needed_to_start(explained):
    last = "\n".join(render(explained, width=80).splitlines()[-24:])
    for told in (
        "the scores are not divided",
        "divide by math.sqrt",
        "the shape is (2, 3)",
        "passing:",
        "does not conform",
    ):
        assert told in last


def test_warnings_take_a_line_each_and_are_counted_apart_from_failures(explained):
    text = render(explained, width=120)
    assert "5 clauses: 1 pass, 2 fail, 2 warnings" in text
    assert "WARN SDPA-SOFT · soft went wrong" in text
    assert "again:   conform run --impl mypkg --only SDPA-SOFT" not in text
    full = io.StringIO()
    write_report(explained, console(full, "never", 120), warnings=True)
    assert "--only SDPA-SOFT" in full.getvalue()
    assert "may went wrong" in full.getvalue()


def test_the_report_ends_with_a_line_for_each_failure_and_none_for_warnings(explained):
    lines = render(explained, width=60).splitlines()
    start = lines.index("In short:")
    assert lines[start + 1 : start + 5] == [
        "FAIL SDPA-SCALE · the scores are not divided by √d_k",
        "     fix: divide by math.sqrt(k.shape[-1])",
        "FAIL MHA-X · the shape is (2, 3), expected (2, 4)",
        "",
    ]
    assert "WARN" not in "".join(lines[start:])


def test_the_list_at_the_end_stays_on_the_last_screen(report, result):
    """Catches thirty lines of failures that push the first one, on which the others are built, out of sight."""
    text = render(report(*(result(Verdict.FAIL, f"SDPA-N{n}", line=n) for n in range(30))))
    last = "\n".join(text.splitlines()[-24:])
    assert "In short:\nFAIL SDPA-N0 ·" in last
    assert "and 18 more, above" in last


def test_what_was_taken_for_a_part_stands_where_its_clauses_are_counted(explained):
    """Catches a last screen that leaves open which of the code's classes failed."""
    found = replace(explained, found={"MultiHeadAttention": "mypkg.layers:Heads"})
    assert "MultiHeadAttention (Heads) 0/1" in render(found, width=120)
    same = replace(explained, found={"MultiHeadAttention": "mypkg.layers:MultiHeadAttention"})
    assert "MultiHeadAttention 0/1" in render(same, width=120)


def test_an_error_shows_the_line_that_raised_before_the_general_reason(report, result):
    broken = result(Verdict.ERROR, message="it raised ValueError: no", where="mypkg/attention.py:31 in forward")
    text = render(report(broken), width=120, verbose=True)
    assert text.index("raised ValueError") < text.index("where:") < text.index("fix:") < text.index("why:")


def test_progress_counts_the_clauses_of_each_part_that_pass_and_what_is_new(explained):
    assert "passing: ScaledDotProductAttention 1/2, MultiHeadAttention 0/1" in render(explained, width=120)
    page = io.StringIO()
    before = {"ScaledDotProductAttention": 0, "MultiHeadAttention": 0}
    write_report(explained, console(page, "never", 120), before=before)
    assert "ScaledDotProductAttention 1/2 (+1 since the last run), MultiHeadAttention 0/1\n" in page.getvalue()


def test_a_second_failure_with_the_same_cause_points_to_the_first(explained):
    """Would break if one mistake that breaks two clauses were explained twice, as if there were two."""
    first = explained.results[0]
    second = replace(
        first, clause=replace(first.clause, id="SDPA-LATER", line=7), finding=stated("output[1] is 3, expected 2")
    )
    text = render(replace(explained, results=[first, second, explained.results[1]]), width=120)
    assert "the same mistake as in SDPA-SCALE, above" in text
    assert text.count("divide by math.sqrt(k.shape[-1])") == 2  # once more in short
    assert "output[1] is 3, expected 2" in text
    assert "FAIL SDPA-SCALE, SDPA-LATER · the scores are not divided by √d_k" in text
    unsure = replace(second, looks_like=(replace(first.looks_like[0], certainty=Certainty.UNSURE),))
    assert "the same mistake" not in render(replace(explained, results=[first, unsure]), width=120)


def raised(error, said):
    return Finding(Kind.RAISED, "", error=error, said=said)


def test_the_same_exception_at_the_same_line_is_one_cause(explained):
    """Would break if code that takes no float masks had four red entries with four different fixes."""
    first = replace(
        explained.results[0], verdict=Verdict.ERROR, looks_like=(), finding=raised("TypeError", "~ is not for floats"),
        where="mypkg/attention.py:12 in attend",
    )  # fmt: skip
    again = replace(
        first, clause=replace(first.clause, id="SDPA-LATER", line=7), finding=raised("TypeError", "~ is not it")
    )
    other = replace(first, clause=replace(first.clause, id="SDPA-OTHER", line=8), finding=raised("ValueError", "no"))
    text = render(replace(explained, results=[first, again, other]), width=120)
    assert text.count("the same mistake as in SDPA-SCALE, above") == 1
    assert "ERROR SDPA-SCALE, SDPA-LATER · it raised TypeError: ~ is not for floats" in text
    assert "ERROR SDPA-OTHER · it raised ValueError" in text


def test_an_exception_stands_above_the_mistake_that_it_looks_like(explained):
    broken = replace(explained.results[0], verdict=Verdict.ERROR, finding=raised("ValueError", "no"), where="a.py:3")
    text = render(replace(explained, results=[broken]), width=120)
    assert text.index("it raised") < text.index("where:") < text.index("looks like:") < text.index("fix:")
