import html
import json
import re

from conformkit.conformance.apps.grade.outputs import write_all
from conformkit.conformance.apps.grade.outputs.overview import as_overview
from conformkit.conformance.apps.grade.outputs.student import as_html, as_markdown
from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.apps.grade.record import Advice, Grade


def words(page):
    """Return a page's text, without its style and script."""
    body = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_a_student_reads_points_by_group_and_what_does_not_hold(graded):
    grade = graded(required=("SDPA-SCALE",), notes=("conform.toml declares relu, which the policy does not allow",))
    report = report_of(grade)
    for text in (words(as_html(grade, report)), as_markdown(grade, report).replace("\\", "")):
        for told in (
            "ada", "7.5 of 12.5 points", "5 of 10", "2.5 of 2.5", "1 of 2 clauses pass", "SDPA-SCALE",
            "fails and is required: no points for the whole submission", "conform.toml declares relu",
            "numbers are wrong",
        ):  # fmt: skip
            assert told in text, told


def test_a_student_whose_code_was_not_judged_reads_why(lost):
    for text in (words(as_html(lost, None)), as_markdown(lost, None)):
        assert "not loaded: importing it raised ImportError: No module named 'numpyy'" in text
        assert "the path of your code at home" in text
        assert "0 of 12.5 points" in text


def test_a_student_reads_no_advice(graded):
    grade = graded(advice=(Advice("call", "torch.nn.MultiheadAttention", "a.py:3"),))
    report = report_of(grade)
    assert "MultiheadAttention" not in as_html(grade, report)
    assert "MultiheadAttention" not in as_markdown(grade, report)


def test_links_to_clauses_lead_somewhere(graded):
    page = as_html(graded(), report_of(graded()))
    targets = set(re.findall(r'href="#([A-Z0-9-]+)"', page))
    assert "SDPA-SCALE" in targets
    assert targets <= set(re.findall(r'id="([A-Z0-9-]+)"', page))


def test_the_overview_shows_scores_trouble_mistakes_and_advice(graded, lost):
    advised = graded("cleo", 3, advice=(Advice("import", "transformers", "a.py:1"),))
    text = words(as_overview([graded(), lost, advised]))
    for told in (
        "3 submissions", "Median 60 %", "2 judged, 1 not loaded", "bob : not loaded , importing it raised ImportError",
        "SDPA-SCALE", "the scores are not divided by √d_k", "cleo : import of transformers at a.py:1",
        "whether two submissions resemble each other",
    ):  # fmt: skip
        assert told in text, told


def test_the_picture_describes_in_words_what_it_shows(graded):
    page = as_overview([graded(points=10.0, max_points=10.0)] * 3)
    (described,) = re.findall(r'<svg[^>]* role="img" aria-labelledby="([^"]+)"', page)
    for name in described.split():
        assert f'id="{name}"' in page
    assert "90 to 100 percent: 3" in page


def test_hostile_names_are_text_on_every_page(hostile, graded):
    for page in (as_html(hostile, report_of(hostile)), as_overview([hostile, graded()])):
        assert "<script>document" not in page
        assert "<svg/onload" not in page
        assert page.count("<script>") == 1
        assert not set(page) & {"\x1b", "\u202e", "\x00"}


def test_everything_is_written_below_ids_that_are_fit_for_names(tmp_path, graded, lost, hostile):
    grades = [graded(), lost, hostile]
    write_all(tmp_path, grades)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "grades.csv",
        "junit.xml",
        "overview.html",
        "similar.csv",
        "students",
    ]
    for grade in grades:
        folder = tmp_path / "students" / grade.submission.id
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["appeals", "grade.json", "report.html", "report.md", "results.json"]
        assert Grade.from_object(json.loads((folder / "grade.json").read_text())).submission.id == grade.submission.id
    overview = (tmp_path / "overview.html").read_text()
    for target in re.findall(r'href="(students/[^"]+)"', overview):
        assert (tmp_path / target).is_file()
    assert "students/s1/appeals/attention.html" in overview


def test_writing_again_replaces_what_was_there(tmp_path, graded):
    write_all(tmp_path, [graded(), graded("bob", 2)])
    write_all(tmp_path, [graded(points=1.0)])
    assert "1 of 12.5" in (tmp_path / "overview.html").read_text()
    assert len((tmp_path / "grades.csv").read_text().splitlines()) == 2


def test_an_empty_class_has_its_outputs(tmp_path):
    write_all(tmp_path, [])
    assert "0 submissions" in (tmp_path / "overview.html").read_text()


def test_the_policys_title_stands_in_every_output(graded, tmp_path):
    write_all(tmp_path, [graded()], Policy(title="Week <3>"))
    for name in ("overview.html", "students/s1/report.html", "junit.xml"):
        assert "Week &lt;3&gt;" in (tmp_path / name).read_text()
    assert r"Week \<3\>" in (tmp_path / "students/s1/report.md").read_text()
    assert json.loads((tmp_path / "students/s1/results.json").read_text())["output"].startswith("Week <3>")
