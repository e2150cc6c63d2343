"""Requests as a script in plain Python."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformkit.conformance.apps.repro.matching import Origin
from conformkit.conformance.apps.repro.naming import Imports
from conformkit.conformance.apps.repro.page import Page
from conformkit.conformance.apps.repro.scene import Scene, Sighting
from conformkit.conformance.apps.repro.steps import Steps
from conformkit.spec.arrays import Array

__all__ = ["Script", "write_script"]


_MANY_ROWS = 50


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a script, and the arrays in the file next to it, if there are too many numbers."""

    text: str
    arrays: Mapping[str, Array] = field(default_factory=dict)

    def npz(self) -> bytes:
        """Return the file next to it."""
        stream = io.BytesIO()
        np.savez_compressed(stream, **self.arrays)  # type: ignore[arg-type]
        return stream.getvalue()


def write_script(scene: Scene, imports: Imports, framework: str, title: str, told: str) -> Script:
    """Return the script; `title` says what fails, `told` how to create it again."""
    page = Page(imports, torch=framework == "torch")
    steps = Steps(scene, page)
    lines = list(steps.lines())
    shown = list(_shown(scene, steps, page))
    parts = [
        _docstring(title, scene.note, told), "\n".join(page.heading()), *page.helpers,
        "\n".join(page.data()), "\n".join(lines), "\n".join(shown),
    ]  # fmt: skip
    text = "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
    return Script(text, {} if page.inline else page.stored())


def _docstring(*paragraphs: str) -> str:
    text = "\n\n".join(p for p in paragraphs if p).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'


def _shown(scene: Scene, steps: Steps, page: Page) -> Iterator[str]:
    """Yield the lines that print."""
    if scene.finding is not None:
        yield from _compared(scene.finding, steps, page)
        return
    if scene.raises:
        yield 'print("nothing was raised")'
    elif scene.shown:
        yield from (line for n in scene.shown for line in _outputs(scene, n, steps))
    else:
        yield from _parameters(scene, steps)
    yield "print(__doc__)  # what is wanted"


def _outputs(scene: Scene, number: int, steps: Steps) -> Iterator[str]:
    """Yield the lines that print a call's result; for many rows of ids, how often each came last."""
    own = {name: variable for (n, name), variable in steps.outputs.items() if n == number}
    for name, variable in own.items():
        label = f"gradient of {name.partition(':')[2]}" if name.startswith(("grad:", "param:")) else variable
        result = scene.records[number].results.get(name)
        if result is None:
            yield f"print({label!r}, {variable})"
        elif result.dtype.kind == "i" and result.ndim == 2 and len(result) > _MANY_ROWS:
            yield f"ids, counts = np.unique({variable}[:, -1], return_counts=True)"
            yield 'print("last ids", ids, "counts", counts, sep="\\n")'
        else:
            yield f'print({label!r}, {variable}.dtype, {variable}.shape, {variable}, sep="\\n")'


def _parameters(scene: Scene, steps: Steps) -> Iterator[str]:
    handle = scene.records[-1].handle or 0
    name = steps.objects.name(handle)
    if steps.objects.is_module(handle):
        yield f"for name, parameter in {name}.named_parameters():"
        yield "    print(name, tuple(parameter.shape))"
        yield f'print(sum(p.numel() for p in {name}.parameters()), "numbers")'
    else:
        yield f"print(vars({name}) if hasattr({name}, '__dict__') else {name})"


def _compared(finding: Sighting, steps: Steps, page: Page) -> Iterator[str]:
    """Yield the lines that print both sides, and the worst entry as the report quotes it."""
    wanted = np.asarray(finding.wanted)
    yield f"got = {_origin(finding.got, steps)}"
    if finding.want is not None:
        yield f"want = {_origin(finding.want, steps)}"
    elif wanted.ndim == 0:
        yield f"want = {_scalar(wanted)}"
    elif wanted.size and (wanted == wanted.flat[0]).all():
        yield f"want = np.full({wanted.shape}, {_scalar(wanted.flat[0])})"
    else:
        page.keep(_readable(wanted), "want")
    if finding.entry:
        yield 'print(f"got {got:.6g}, expected {want:.6g}, difference {got - want:.3g}")'
    elif finding.alike:
        yield 'print("one", got, "other", want, "they should differ", sep="\\n")'
    elif wanted.dtype.kind == "b":
        yield 'print("got", got, "want", want, sep="\\n")'
    else:
        yield 'print("got", got, "want", want, "difference", got - want, sep="\\n")'
        yield "at = np.unravel_index(np.nan_to_num(np.abs(got - want), nan=np.inf).argmax(), np.shape(got))"
        form = ":.6g" if wanted.dtype.kind == "f" else ""
        yield f'print(f"got{{[int(i) for i in at]}} is {{got[at]{form}}}, expected {{want[at]{form}}}")'


def _origin(origin: Origin, steps: Steps) -> str:
    return origin.expression.format(steps.output(origin.call, origin.output))


def _scalar(number: Any) -> str:
    text = repr(number.item())
    return f"np.{text.lstrip('-')}" if text in {"nan", "inf"} else text.replace("-inf", "-np.inf")


def _readable(want: Array) -> Array:
    """Round to ten digits, which only a test for equality can distinguish."""
    if want.dtype != np.float64 or not want.size or not np.isfinite(want).all():
        return want
    size = float(np.abs(want).max())
    return want if size == 0.0 else np.round(want, 10 - int(np.floor(np.log10(size))))
