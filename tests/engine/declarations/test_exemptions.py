"""Which declaration took a clause away follows from the type of the reason, never from its words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.binding.config import load_config
from conformkit.conformance.engine.declarations.exemptions import exempted_by
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run
from tests.engine.conftest import ATTENTION

NARROW = """
[implementation]
dtypes = ["bfloat16"]
[limits]
tokens = { max = 3 }
[components.MultiHeadAttention]
construct = { width = "d_model", num_heads = "num_heads" }
"""


def declaring(folder: Path, text: str = NARROW, **taken: str) -> Any:
    path = folder / "conform.toml"
    path.write_text(text, encoding="utf-8")
    bound = SimpleNamespace(component=SimpleNamespace(name="MultiHeadAttention"), exempted=taken)
    return SimpleNamespace(config=load_config(path), bounds=lambda: [bound])


@pytest.mark.parametrize(
    ("why", "key"),
    [
        (NotApplicable("its nature knows no limits, formats or rounding"), ""),
        (NotApplicable.from_sizes("there is nothing to see"), "limits"),
        (NotApplicable.from_formats("there is nothing to see"), "implementation.dtypes"),
        (NotApplicable("there is nothing to see", lacks="masks"), "components.MultiHeadAttention.call"),
        (NotApplicable("there is nothing to see", lacks="dropout"), ""),
    ],
    ids=["nature", "sizes", "formats", "ability", "lacking"],
)
def test_the_type_of_a_reason_names_the_declaration(why: NotApplicable, key: str, tmp_path: Path) -> None:
    implementation = declaring(tmp_path, masks="components.MultiHeadAttention.call")
    assert exempted_by(implementation, "MultiHeadAttention", why) == key


def test_an_error_that_speaks_of_limits_is_no_declaration(tmp_path: Path) -> None:
    # its message comes from the submission
    (tmp_path / "conform.toml").write_text("[limits]\ntokens = { max = 600 }\n", encoding="utf-8")
    code = f"{ATTENTION}\n\ndef __getattr__(name):\n    raise RuntimeError('over the limit')\n"
    (tmp_path / "__init__.py").write_text(code, encoding="utf-8")
    report = run(RunRequest(str(tmp_path), only=("MHA",), diagnose=False, strict=True))
    assert any("over the limit" in result.reason for result in report.results)
    assert not report.exempted()
