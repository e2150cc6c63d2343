"""Which clauses apply to the bundled reference in a variant: others need not apply to submissions either."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict

from conformkit.conformance.binding.config import Config
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.scratch import held_folder
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause
from conformkit.spec.components import base_of

__all__ = ["Baseline"]


class Baseline:
    """Stores for each configuration which clauses apply to the reference, and judges it if that is unknown.

    `known` are earlier answers, by key and clause; `learned` are those added here.
    """

    def __init__(self, known: dict[tuple[str, str], bool], seed: int, warm: Callable[[], WorkerFactory]) -> None:
        self._known, self._seed, self._warm = known, seed, warm
        self.learned: dict[tuple[str, str], bool] = {}

    def applies(self, clause: Clause, config: Config, together: Iterable[Clause] = ()) -> bool:
        """Return whether a clause applies to the reference with this configuration; also answer for `together`."""
        key = _key(config, clause)
        if (key, clause.id) not in self._known:
            asked = {clause.id: clause} | {other.id: other for other in together if _key(config, other) == key}
            self._judge(key, config, list(asked.values()))
        return self._known[key, clause.id]

    def _judge(self, key: str, config: Config, asked: list[Clause]) -> None:
        first = asked[0]
        variant, limits = config.variant_for(first.component), config.limits_for(first.component)
        with ExitStack() as closing, held_folder() as folder:
            base = base_of(first.component)
            package = write_reference(folder / "reference", (), variant, base=base)
            own = Config(variant=variant.differences(base), limits=limits, dtypes=config.dtypes)
            request = RunRequest(impl=str(package), profile=first.profile, seed=self._seed, config=own)
            implementation, _ = closing.enter_context(opened(request, self._warm()))
            judge = Judge(implementation, tests(first.profile), seed=self._seed)
            for clause in asked:
                found = judge.result(clause.id).verdict is not Verdict.NOT_APPLICABLE
                self._known[key, clause.id] = self.learned[key, clause.id] = found


def _key(config: Config, clause: Clause) -> str:
    """Return the digest of everything the answer depends on."""
    content = {
        "variant": asdict(config.variant_for(clause.component)),
        "limits": asdict(config.limits_for(clause.component)),
        "dtypes": config.dtypes,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
