"""The report of a training run in a browser: pictures are drawn, nothing is fetched, hostile text stays text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformkit.reference.training import ablation, config, metrics
from conformkit.reference.training.interrupts import stopping
from conformkit.reference.training.loop import train
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.report import write_report
from conformkit.reference.training.session import begin
from tests.reference.training.conftest import SMALL

pytestmark = pytest.mark.full(guard="test_a_page_fits_its_window_says_nothing_on_the_console_and_fetches_nothing")
HOSTILE = "</td><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">\x1b[31m\x00"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with hostile corpus, title and samples."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("training")
    (folder / "corpus.txt").write_text((HOSTILE + "$x^2$ \n") * 20, encoding="utf-8")
    chosen = config.with_changes(
        config.parse(SMALL.format(corpus=folder / "corpus.txt")), {"model.block_size": 16, "samples.tokens": 90}
    )
    chosen = config.TrainingConfig(**{**chosen.__dict__, "title": HOSTILE, "source": HOSTILE})
    session = begin(chosen, folder / "run")
    train(session.run, session.folder, Silent())
    session.sample_best()
    metrics.append(session.folder.samples, [{"step": 12, "prompt": HOSTILE, "temperature": 1.0, "text": HOSTILE}])
    assert write_report(session) == ""
    return session.folder


@pytest.mark.parametrize("width", [1280, 360])
def test_pictures_are_drawn_and_nothing_is_fetched_or_run(browser, trained, width):
    browser.open(trained.report, width)
    sizes = browser.ask("return [...document.images].map((image) => [image.naturalWidth, image.alt.length > 40])")
    assert len(sizes) == 4
    assert all(size > 500 and told for size, told in sizes)
    assert browser.fetched() == []
    assert browser.complaints() == []
    assert browser.ask("return document.title").startswith("</td><script>")
    assert browser.ask("return document.querySelectorAll('script').length") == 0
    assert browser.ask("return document.documentElement.scrollWidth") <= width


def test_facts_numbers_and_samples_are_shown(browser, trained):
    browser.open(trained.report)
    text = browser.ask("return document.body.innerText")
    assert "best validation loss" in text
    assert "bits a character" in text
    evaluations = [one for one in metrics.read_lines(trained.metrics) if one["kind"] == "evaluation"]
    browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    rows = [[cell.text for cell in row.find_elements("css selector", "td")] for row in browser.all("details tbody tr")]
    assert rows == [[str(one["step"]), f"{one['loss']:.4f}"] for one in evaluations]
    assert len(browser.all("tr.best")) == 1
    heads = [cell.text for cell in browser.all(".samples thead th")]
    assert heads == ["prompt", "temperature 0.0", "temperature 1.0"]
    shown = browser.ask("return [...document.querySelectorAll('.samples td pre')].map((one) => one.textContent)")
    wanted = HOSTILE.replace("\x1b", "\ufffd").replace("\x00", "\ufffd")
    assert wanted in shown
    assert "d_model = 16" in browser.ask("return document.body.innerText")


TABLE = """
title = "widths"
[[variant]]
axis = "width"
name = "<b>8</b>"
set = { "model.d_model" = 8 }
[[variant]]
axis = "depth"
name = "one"
set = { "model.num_layers" = 1 }
"""


def test_an_ablation_shows_its_table_and_its_line(browser, tmp_path):
    (tmp_path / "table.toml").write_text(TABLE)
    (tmp_path / "corpus.txt").write_text("abcab " * 100)
    study = ablation.Study.begin(
        str(tmp_path / "table.toml"), config.parse(SMALL.format(corpus=tmp_path / "corpus.txt")), tmp_path / "study"
    )
    with stopping() as asked:
        assert len(list(study.run(asked))) == 3
    assert study.write() == ""
    browser.open(tmp_path / "study" / "report.html")
    rows = browser.ask(
        "return [...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert [row[1] for row in rows] == ["baseline", "<b>8</b>", "one"]
    assert [row[2] for row in rows] == [f"{row.parameters:,}" for row in study.rows]
    assert browser.ask("return document.images[0].naturalWidth") > 500
    assert f"{-study.fit().exponent:.4f} ± {study.fit().error:.4f}" in browser.ask("return document.body.innerText")
    assert browser.fetched() == []


def test_pictures_lie_next_to_the_page(trained):
    assert {path.name for path in Path(trained.path).glob("*.png")} == {
        "training.png",
        "attention.png",
        "gradients.png",
        "perplexity.png",
    }
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in Path(trained.path).glob("*.png"))
