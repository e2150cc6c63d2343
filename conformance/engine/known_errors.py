"""Exceptions whose cause is known from their message: what the code asks of the machine, number formats, odd widths.

The messages are those of PyTorch and NumPy. An exception says what went wrong; these lines say what to change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from conformkit.conformance.engine.results import Result, Verdict

__all__ = ["KnownError", "known_error"]


@dataclass(frozen=True, slots=True)
class KnownError:
    """What an exception means and how to fix it; `foreign` if it says nothing about the component's arithmetic."""

    pattern: str
    fix: str
    foreign: bool = False
    component: str = ""
    odd: str = ""
    """A size that must be odd for this to be the cause."""
    clauses: str = ""
    """A pattern of the clauses, from the beginning of their ids, that this can be the cause for."""


_NO_BOOLEAN = r"supports boolean masks|implemented on integer and Bool|condition to be a bool|'invert' not supported"
_NO_PROBABILITIES = r"probability tensor contains|invalid multinomial distribution|robabilities contain NaN"
_KNOWN = (
    KnownError(
        r"not compiled with CUDA|no NVIDIA driver|No CUDA GPUs|CUDA driver|CUDA error|MPS backend is not|libcuda",
        'the code asks for a GPU, and there is none: leave `.cuda()` and `.to("cuda")` out, and make new tensors '
        "where the input is: `torch.zeros(…, device=x.device)`",
        foreign=True,
    ),
    KnownError(
        r"on the same device|Expected all tensors|device type",
        "a tensor is made on another device than the input: pass `device=x.device`, or keep it with register_buffer",
    ),
    KnownError(
        r"expanded size of the tensor|could not broadcast|shape mismatch|must match the size|must match the existing",
        "an odd width has one more sine than cosine: take only so many cosines, "
        "`torch.cos(angles)[:, : d_model // 2]`, or refuse odd widths by a ValueError that says so",
        component="PositionalEncoding", odd="d_model",
    ),
    KnownError(
        _NO_BOOLEAN,
        "a float mask arrives where only a boolean one works: add it to the scores, `scores + mask`, unless "
        '`mask.dtype == torch.bool`. If only boolean masks are meant, declare `mask = { kinds = ["bool"] }` in '
        "conform.toml",
        foreign=True, component="ScaledDotProductAttention",
    ),
    KnownError(
        _NO_BOOLEAN,
        "a mask made of ones and zeros is no boolean one: write `torch.ones(T, T, dtype=torch.bool, device=x.device)`, "
        "or compare it, `mask == 0`",
        foreign=True,
    ),
    KnownError(
        r"must have the same dtype|expected scalar type|but found (Double|Float)|expected m1 and m2 to have the same",
        "two number formats meet: a tensor is made in float32 while the input is float64; pass `dtype=x.dtype`, or "
        "keep it with register_buffer, so that `.double()` reaches it",
    ),
    KnownError(
        r"view size is not compatible",
        "`view` needs numbers that lie in order, and transpose changes that: use `reshape`, or `.contiguous()` first",
    ),
    KnownError(
        r"numpy\(\) on Tensor that requires grad|Can't call numpy|convert .* tensor to numpy",
        "a tensor with gradients is turned into a NumPy array: compute with torch functions, not with np",
    ),
    KnownError(
        r"not implemented for '(Half|BFloat16)'",
        "this build of torch has no kernel for the operation in half precision, which is no mistake of the component: "
        "compute it in float32, `x.float()`, or judge with `--device cuda`, with a newer torch or in float32",
        foreign=True,
    ),
    KnownError(
        r"constraint Simplex",
        "probabilities in half precision sum to 1 only as far as they are rounded: pass `logits=` to the distribution, "
        "or compute them in float32",
        foreign=True,
    ),
    KnownError(
        r"\w\(\) takes .* positional arguments? but|invalid combination of arguments|name '\w+' is not defined",
        "a function is called with arguments that it does not take, or by a name that it does not have: compare the "
        "line with its signature",
        foreign=True,
    ),
    KnownError(
        r"maximum recursion depth",
        "a function calls itself without end: look for a method that calls the module instead of the next layer",
    ),
    KnownError(
        _NO_PROBABILITIES,
        "top-p leaves no id to draw from: the id that crosses p belongs to the set, so remove an id only if those "
        "before it reach p, `cumsum(-1) - probs >= p`; and a mask that is shifted keeps the first, `remove[..., 0] = "
        "False`",
        clauses="GEN-TOPP",
    ),
)  # fmt: skip


def known_error(result: Result) -> KnownError | None:
    """Return what an exception is known to mean; None if it is not known, or if the result is no exception."""
    if result.verdict is not Verdict.ERROR:
        return None
    return next((known for known in _KNOWN if _fits(known, result)), None)


def _fits(known: KnownError, result: Result) -> bool:
    raised = result.finding
    if raised is None or not re.match(known.clauses, result.clause.id) or not re.search(known.pattern, raised.said):
        return False
    if known.component not in {"", result.clause.component, str(raised.setting)}:
        return False
    size = raised.sizes().get(known.odd)
    return not known.odd or (isinstance(size, int) and size % 2 == 1)
