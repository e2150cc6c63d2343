"""The README shows what its commands print."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tour():
    spec = importlib.util.spec_from_file_location("tour", ROOT / "docs" / "tour.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_what_its_commands_print(tour):
    readme = tour.README.read_text(encoding="utf-8")
    assert tour.commands(readme)
    assert tour.shown(readme) == readme, "run python docs/tour.py"


@pytest.mark.full(guard="test_the_readme_shows_what_its_commands_print")
def test_the_picture_shows_a_whole_run_of_which_they_are_a_part_and_fetches_nothing(tour):
    assert all(command.startswith(tour.DRAWN) for command in tour.commands(tour.README.read_text(encoding="utf-8")))
    picture = tour.PICTURE.read_text(encoding="utf-8")
    assert picture == tour.drawn(tour.DRAWN), "run python docs/tour.py"
    assert not re.findall(r"url\((?!#)", picture)


def test_outdated_output_of_a_command_is_reported(tour, monkeypatch):
    monkeypatch.setattr(
        tour, "colored", lambda command: "\x1b[31mred\x1b[0m\n" if command == "conform spec" else "other\n"
    )
    pair = "```console\nconform {}\n```\n\n```text\nred\n```\n"
    assert tour.outdated(pair.format("spec") + pair.format("run")) == ["conform run"]
