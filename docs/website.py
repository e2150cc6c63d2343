"""Write the guide and the law as one web site: `python docs/website.py FOLDER`. A dead link is an error.

The pages are those of this folder, README.md and CONTRIBUTING.md, the tutorial, what is generated from the code
(commands, policy, JSON), and the pages of `conform spec --html`. On GitHub, `your-organization/conformkit` and the
commit of zeros in workflows to copy become the repository and the commit that the site is built from.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import typer

from conformkit.cli.app import app
from conformkit.cli.progress import progress_bar
from conformkit.conformance.apps.grade.policy_file import example
from conformkit.conformance.apps.handbook.documents import sources
from conformkit.conformance.apps.handbook.markdown import code
from conformkit.conformance.apps.handbook.site import BuildError, build
from conformkit.conformance.report.json_report import schema

ROOT = Path(__file__).parents[1]
USERS: Mapping[str, tuple[str, ...]] = {
    "Begin": ("Overview <overview>", "guide/tutorial", "guide/reading", "guide/workflow", "guide/glossary"),
    "Student": (
        "guide/for-students",
        "guide/report",
        "guide/conform-toml",
        "guide/encoder-decoder",
        "guide/encoder-and-images",
        "guide/paths",
        "guide/finetuning",
        "guide/port",
        "guide/gpu",
        "guide/training",
    ),
    "Instructor": ("guide/for-instructors", "guide/grading", "guide/gradescope", "guide/docker", "guide/scale"),
    "Library author": (
        "guide/for-authors",
        "guide/for-porting",
        "guide/for-agents",
        "guide/judge",
        "guide/pytest",
        "guide/ci",
        "guide/static",
        "guide/strategies",
        "guide/found",
    ),
    "Reference": ("guide/command", "reference/commands", "reference/policy", "reference/json"),
    "The law": ("law", "guide/left-out"),
    "About": (
        "contributing",
        "architecture",
        "guide/security",
        "guide/quality",
        "guide/features",
        "guide/results",
        "changes",
    ),
}
"""The pages of the guide by who reads them."""

_TOP = {"README.md": "overview", "CONTRIBUTING.md": "contributing", "ARCHITECTURE.md": "architecture",
        "CHANGELOG.md": "changes", "spec/sources.md": "sources", "spec/errata.md": "errata"}  # fmt: skip
_FIRST = """export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu    # Linux: no CUDA packages
pip install git+https://github.com/your-organization/conformkit
conform run mypkg"""
_FOR = {"students": "for-students", "instructors": "for-instructors", "library authors": "for-authors",
        "porting a checkpoint": "for-porting", "agents": "for-agents"}  # fmt: skip
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Return the Markdown of each page by its path, without `.md`."""
    law = sources()
    found = {**law, "law": law["index"], "index": _index()}
    for file, page in _files().items():
        found[page] = _moved((ROOT / file).read_text(encoding="utf-8"), file, page)
    found["guide/tutorial"] = _notebook(ROOT / "docs" / "tutorial.ipynb")
    found["reference/commands"] = "\n".join(["# Commands and options\n", *_commands()])
    found["reference/policy"] = f"# policy.toml\n\nEvery key, with its default.\n\n{code(example(), 'toml')}"
    found["reference/json"] = "\n".join(["# The JSON of a report\n", *_properties(schema(), 2)])
    return {page: _own_name(text) for page, text in found.items()}


def _files() -> dict[str, str]:
    """Return the page of each file of the repository that becomes one; those of the law are made elsewhere."""
    guide = {f"docs/{file.name}": f"guide/{file.stem}" for file in sorted((ROOT / "docs").glob("*.md"))}
    return {file: page for file, page in {**_TOP, **guide}.items() if not file.startswith("spec/")}


def _law() -> dict[str, str]:
    """Return the page of each document of the law."""
    return {f"spec/{file.name}": f"law/{file.stem}" for file in (ROOT / "spec").glob("*.md")}


def _index() -> str:
    text = (
        "# conformkit\n\nOne command tells anyone who writes a transformer by hand whether it is right, and if not, "
        f"which mistake it is.\n\n{code(_FIRST, 'console')}\n\n![A run](docs/run.svg)\n\n"
        f"For you: {', '.join(f'[{who}](guide/{page}.md)' for who, page in _FOR.items())}. "
        "New here? Begin with the [tutorial](guide/tutorial.md), or read the [overview](overview.md).\n"
    )
    parts = [f":caption: {user}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(names) for user, names in USERS.items()]
    return "\n".join([text, *(code(part, "{toctree}") for part in parts)])


def _moved(text: str, file: str, page: str) -> str:
    """Return a text whose links lead to pages of the site; other files are named, or linked on GitHub."""

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        place = _normal(PurePosixPath(file).parent / path)
        known = {**_law(), **_TOP, **_files()}.get(place)
        if known is not None:
            back = "../" * page.count("/")
            return f"{words}({back}{known}.md{f'#{anchor}' if anchor else ''})"
        if place.endswith(".svg"):
            return f"{words}({'../' * page.count('/')}{place})"
        at = _repository()
        return f"{words}(https://github.com/{at[0]}/blob/{at[1]}/{place})" if at else words.strip("![]")

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def _normal(path: PurePosixPath) -> str:
    return PurePosixPath(os.path.normpath(path)).as_posix()


def _repository() -> tuple[str, str] | None:
    name, commit = os.environ.get("GITHUB_REPOSITORY", ""), os.environ.get("GITHUB_SHA", "")
    return (name, commit) if name and commit else None


def _own_name(text: str) -> str:
    at = _repository()
    return text.replace("your-organization/conformkit", at[0]).replace("0" * 40, at[1]) if at else text


def _notebook(file: Path) -> str:
    """Return a notebook as Markdown: its texts, its code, and what that printed."""
    parts: list[str] = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else code(text, "python"))
        parts += [code("".join(output["text"]), "text") for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def _commands() -> Iterator[str]:
    """Yield a section for each subcommand, from the command line itself."""
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        told = "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", command.help or "")))
        yield f"## conform {name}\n\n{told}\n"
        for parameter in command.params:
            if getattr(parameter, "hidden", False):
                continue
            words = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
            value = "" if getattr(parameter, "is_flag", False) else f" `{parameter.metavar or 'VALUE'}`"
            yield f"- {words}{value}: {_plain(getattr(parameter, 'help', '') or '')}"
        yield ""


def _paragraph(text: str) -> str:
    """Return a paragraph of help; examples, which click keeps as they stand, are code."""
    lines = [line.strip() for line in text.replace("\b", "").strip().splitlines()]
    return code("\n".join(lines[1:]), "console") if lines and lines[0] == "Examples:" else _plain(text)


def _plain(text: str) -> str:
    """Return help without the layout of a terminal; what looks like markup is escaped."""
    return re.sub(r"([<>*_\[\]|~])", r"\\\1", " ".join(text.split()))


def _properties(shape: Mapping[str, Any], level: int, path: str = "") -> Iterator[str]:
    """Yield a line for each property of a JSON Schema, those of objects indented below them."""
    for name, inner in shape.get("properties", {}).items():
        kind = inner.get("type", "one of " + ", ".join(map(str, inner["enum"])) if "enum" in inner else "")
        told = " or ".join(kind) if isinstance(kind, list) else str(kind)
        about = _plain(str(inner.get("description", "")))
        yield f"{'  ' * path.count('.')}- `{path}{name}`{f', {told}' if told else ''}{f': {about}' if about else ''}"
        below = inner.get("items", inner)
        if isinstance(below, dict) and level:
            yield from _properties(below, level - 1, f"{path}{name}.")


def main(arguments: list[str]) -> int:
    """Write the site into a new folder; return the exit code."""
    if len(arguments) != 1 or Path(arguments[0]).exists():
        print("usage: python docs/website.py FOLDER, a new one", file=sys.stderr)
        return 2
    settings = {"html_title": "conformkit", "highlight_language": "none"}
    try:
        with progress_bar("pages") as step:
            pictures = {f"docs/{file.name}": file for file in sorted((ROOT / "docs").glob("*.svg"))}
            count = build(Path(arguments[0]), pages(), step, settings, pictures)
    except BuildError as error:
        print(f"docs/website.py: {error}", file=sys.stderr)
        return 1
    print(f"{count} pages in {arguments[0]}; start with {Path(arguments[0]) / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
