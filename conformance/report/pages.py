"""Pages for a browser, one file each: nothing is fetched, and only the kit's own script runs.

jinja2 escapes all that a template prints. The content security policy allows one style and one script, each by its
digest: if an implementation injected markup after all, it could not run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report import causes, pictures, wording
from conformkit.conformance.report.milestones import State
from conformkit.conformance.text import count, number, plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["MARKS", "page"]

_LONGEST = 8000
_CODE = re.compile(r"`([^`]+)`")
_STRESS = re.compile(r"(?<![\w*])\*(\w(?:[^*\n]*\w)?)\*(?![\w*])")
_OWN = "conformkit.conformance.report.templates"

MARKS = {
    Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.ERROR: "✗", Verdict.CRASH: "✗", Verdict.TIMEOUT: "✗",
    Verdict.BLOCKED: "◌", Verdict.NOT_IMPLEMENTED: "–", Verdict.NOT_APPLICABLE: "–", Verdict.NOT_RUN: "?",
}  # fmt: skip
"""A sign besides the word and the color: not everyone can see the colors."""

_SIGNS: dict[str, str] = {**{verdict.value: mark for verdict, mark in MARKS.items()}, wording.WARNING: "!"}
_STATES = {
    State.DONE: "✓",
    State.BROKEN: "✗",
    State.BLOCKED: "◌",
    **dict.fromkeys((State.UNJUDGED, State.UNFINISHED, State.LEFT_OUT), "–"),
}


def page(template: str, *packages: str, **given: Any) -> str:
    """Return a page from a template, searched for in these packages first."""
    return _environment(packages).get_template(template).render(**given)


@cache
def _environment(packages: Sequence[str]) -> Environment:
    environment = Environment(
        loader=FunctionLoader(_finder((*packages, _OWN))), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    style, script = _text("style.css"), _text("page.js")
    environment.filters["prose"] = _prose
    environment.tests["known_in"] = lambda result, report: report.accepted(result)
    environment.globals |= {
        "style": Markup(style), "script": Markup(script), "policy": _policy(style, script),  # noqa: S704 - our own files
        "kit": kit_version(), "spec": SPEC_VERSION, "marks": _SIGNS, "states": _STATES,
        "count": count, "number": number, "slug": _slug, "wording": wording, "causes": causes, "pictures": pictures,
    }  # fmt: skip
    return environment


def _finder(packages: Sequence[str]) -> Callable[[str], str | None]:
    def find(name: str) -> str | None:
        for package in packages:
            file = files(package).joinpath(name)
            if file.is_file():
                return file.read_text(encoding="utf-8")
        return None

    return find


def _text(name: str) -> str:
    return files(_OWN).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    allowed = f"style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'"
    return f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _prose(text: str) -> Markup:
    """Return prose of the law as markup: text in backticks is code, text in asterisks is emphasized."""
    code = _CODE.sub(r"<code>\1</code>", str(escape(text)))
    return Markup(_STRESS.sub(r"<em>\1</em>", code))  # noqa: S704 - escaped above


def _shown(value: Any) -> Any:
    """Return a value as it is printed: without control characters and of bounded length, even if a template forgets."""
    return plain(value, _LONGEST) if isinstance(value, str) and not isinstance(value, Markup) else value


def _slug(text: object) -> str:
    """Return a text as a word for a CSS class or an id."""
    return "".join(c if c.isalnum() else "-" for c in str(text).lower())
