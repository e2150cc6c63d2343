"""The few requests, out of many, that show a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conformkit.conformance.apps.repro.matching import Origin, Output, find, find_entry
from conformkit.conformance.apps.repro.recording import Record
from conformkit.conformance.assertions.checks import Compared
from conformkit.conformance.driver.client.interface import Driver, Reply
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.spec.arrays import Array

__all__ = ["Irreproducible", "Scene", "Sighting", "choose", "perform"]


_MOST_CALLS = 12
_FEW_CALLS = 4


class Irreproducible(Exception):
    """The failure cannot be reproduced with few calls; the text says why."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was compared, and where it comes from.

    `got` is an output or a part of one, or with `entry` the single quoted number. `want` is such a part too, or None if
    the number is known in another way: then `wanted` holds it.
    """

    got: Origin
    want: Origin | None
    wanted: Array
    entry: bool = False
    alike: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """Requests in order, the numbers of those whose outputs are shown, and what they show."""

    records: tuple[Record, ...]
    shown: tuple[int, ...]
    finding: Sighting | None = None
    note: str = ""
    """How this differs from the calls that the clause was judged on."""

    @property
    def raises(self) -> bool:
        """Whether the last request fails."""
        return self.records[-1].failure is not None


def choose(records: Sequence[Record], compared: Compared | None, driver: Driver) -> Scene:
    """Return the calls that a failure is about, with the requests they need. Raises Irreproducible."""
    used = [r for r in records if r.operation in {"build", "copy", "cast", "write", "call", "vjp"}]
    if not used:
        raise Irreproducible("the clause failed without any call to the implementation")
    finding = _found(used, compared) if compared is not None and not used[-1].failure else None
    shown = _shown(used, finding)
    for with_history in (False, True):
        numbers = _needed(used, shown, with_history=with_history)
        if sum(used[n].calls for n in numbers) > _MOST_CALLS:
            raise Irreproducible("it cannot be reproduced with few calls")
        scene = _scene(used, numbers, shown, finding)
        if scene.raises or _repeats(scene, driver):
            return scene
    raise Irreproducible("the same calls alone give another result: it depends on earlier calls")


def outputs_of(records: Sequence[Record]) -> list[Output]:
    """Return all outputs of calls."""
    return [(n, name, array) for n, r in enumerate(records) if r.calls for name, array in _results(r)]


def perform(records: Sequence[Record], driver: Driver) -> tuple[list[Reply], dict[int, int]]:
    """Repeat it in a fresh worker; return the replies, and the new handles by the old ones."""
    driver.restart()
    handles: dict[int, int] = {}
    replies = []
    for record in records:
        header = dict(record.header)
        if "handle" in header:
            header["handle"] = handles[header["handle"]]
        reply = driver.request(header, dict(record.arrays))
        if "handle" in reply.header and record.handle is not None:
            handles[record.handle] = int(reply.header["handle"])
        replies.append(reply)
    return replies, handles


def _results(record: Record) -> Iterator[tuple[str, Array]]:
    yield from ((name, array) for name, array in record.results.items())


def _found(records: Sequence[Record], compared: Compared) -> Sighting | None:
    outputs = outputs_of(records)
    got, want = np.asarray(compared.got), np.asarray(compared.want)
    whole = find(got, outputs)
    if whole is not None:
        others = [o for o in outputs if (o[0], o[1]) != (whole.call, whole.output)] or outputs
        return Sighting(whole, _elsewhere(want, outputs, others), want, alike=compared.alike)
    if compared.alike:
        return None
    error = np.abs(got.astype(np.float64) - want.astype(np.float64))
    at = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
    entry = find_entry(got[at], outputs)
    if entry is None:
        return None
    return Sighting(entry, find_entry(want[at], outputs), np.asarray(want[at]), entry=True)


def _elsewhere(want: Array, outputs: Sequence[Output], others: Sequence[Output]) -> Origin | None:
    """Return where a wanted array comes from; constants have no origin."""
    if not want.size or (want == want.flat[0]).all():
        return None
    return find(want, others) or find(want, outputs)


def _shown(records: Sequence[Record], finding: Sighting | None) -> tuple[int, ...]:
    """Return the numbers of the relevant calls: those compared, else the last ones on the same object."""
    if finding is not None:
        origins = [finding.got, *([finding.want] if finding.want else [])]
        return tuple(sorted({origin.call for origin in origins}))
    if records[-1].failure is not None:
        return ()
    calls = [n for n, record in enumerate(records) if record.calls]
    if not calls:
        return ()
    own = [n for n in calls if records[n].handle == records[calls[-1]].handle and records[n].failure is None]
    if len(own) > _MOST_CALLS:
        raise Irreproducible(f"it needs {len(own)} calls together, one is not enough")
    return tuple(own[-_FEW_CALLS:])


def _needed(records: Sequence[Record], shown: Sequence[int], *, with_history: bool) -> list[int]:
    """Return the numbers of the requests that lead to those shown, or to the last one."""
    targets = list(shown) or [len(records) - 1]
    if records[targets[-1]].failure is not None or not shown:
        targets = [len(records) - 1]
    kept = set(targets)
    pending = [(records[n].header.get("handle"), n) for n in targets]
    while pending:
        handle, before = pending.pop()
        for n in range(before):
            record = records[n]
            if handle is None or record.handle != handle or n in kept:
                continue
            if record.failure is not None or (record.calls and not with_history and not _makes_parameters(records, n)):
                continue
            kept.add(n)
            if record.operation == "copy":
                pending.append((record.header["handle"], n))
    return _without_overwritten(records, sorted(kept))


def _makes_parameters(records: Sequence[Record], number: int) -> bool:
    """Whether this is the first call of an object, which creates its parameters."""
    handle = records[number].handle
    own = [n for n in range(number + 1) if records[n].handle == handle]
    lazy = bool(records[own[0]].reply.get("lazy"))
    return lazy and not any(records[n].calls for n in own[:-1])


def _without_overwritten(records: Sequence[Record], numbers: Sequence[int]) -> list[int]:
    """Leave out writes to an object that are overwritten before they have an effect."""
    kept = []
    for position, n in enumerate(numbers):
        later = [records[m] for m in numbers[position + 1 :] if records[m].handle == records[n].handle]
        follower = next((r for r in later), None)
        overwritten = (
            records[n].operation == "write" and follower is not None and follower.operation == "write"
            and records[n].arrays.keys() <= follower.arrays.keys()
        )  # fmt: skip
        if not overwritten:
            kept.append(n)
    return kept


def _scene(records: Sequence[Record], numbers: Sequence[int], shown: Sequence[int], finding: Sighting | None) -> Scene:
    new = {old: position for position, old in enumerate(numbers)}
    if finding is not None:
        finding = replace(finding, got=_moved(finding.got, new), want=finding.want and _moved(finding.want, new))
    return Scene(tuple(records[n] for n in numbers), tuple(new[n] for n in shown if n in new), finding)


def _moved(origin: Origin, new: Mapping[int, int]) -> Origin:
    return replace(origin, call=new[origin.call])


def _repeats(scene: Scene, driver: Driver) -> bool:
    """Whether repeating only these requests gives the same."""
    try:
        replies, _ = perform(scene.records, driver)
    except ImplementationFailure:
        return False
    return all(
        _same(array, replies[n].tensors.get(name)) for n in scene.shown for name, array in _results(scene.records[n])
    )


def _same(one: Array, other: Array | None) -> bool:
    if other is None or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    scale = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-6 * scale, equal_nan=True))
