"""The pytest plugin: `pytest --pyargs conformkit.conformance --conform-impl mypkg`, one item per clause.

pytest loads it wherever the package is installed, so it imports nothing of the kit before it is used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformkit.conformance.api.embed import EmbeddedSuite

_PACKAGE = Path(__file__).resolve().parents[1]
_BENCH: pytest.StashKey[EmbeddedSuite] = pytest.StashKey()
_PROFILE = "core"
"""Unless another one is asked for."""
_KNOWN: pytest.StashKey[Mapping[str, str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `conform run`, each as `--conform-…`: other names belong to other people's conftest.py."""
    group = parser.getgroup("conformkit", "conformance of transformers")
    group.addoption("--conform-impl", metavar="NAME|PATH", help="the implementation to judge")
    group.addoption("--conform-only", metavar="PREFIX", action="append", default=[], help="only these clauses")
    group.addoption("--conform-profile", metavar="NAME", default=_PROFILE, help="the named set of clauses")
    group.addoption(
        "--conform-level",
        metavar="LEVEL",
        default="MUST",
        choices=("MUST", "SHOULD", "MAY"),
        help="lowest level that fails the test: MUST, SHOULD or MAY",
    )
    group.addoption("--conform-seed", metavar="N", type=int, default=0, help="seed of the inputs")
    levels = ("process", "sandbox", "none")
    group.addoption(
        "--conform-isolation",
        default="process",
        choices=levels,
        help="how the code is isolated: in a process of its own, a sandbox, or not at all",
    )
    group.addoption("--conform-config", metavar="PATH", type=Path, help="use this conform.toml")
    group.addoption(
        "--conform-baseline",
        metavar="PATH",
        type=Path,
        help="expect the failures that this file of conform run --update-baseline lists",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Reject wrong usage before collection."""
    asked = any(argument.split("::")[0].startswith("conformkit.conformance") for argument in config.args)
    if asked and not config.getoption("--conform-impl"):
        message = "say which implementation to judge: --conform-impl NAME|PATH"
        raise pytest.UsageError(message)
    if config.getoption("--conform-baseline"):
        config.stash[_KNOWN] = _known(config.getoption("--conform-baseline"))
    profile = config.getoption("--conform-profile")
    if "," in profile:
        raise pytest.UsageError(f"--conform-profile takes one profile, not {profile}")
    if config.getoption("--conform-only") or profile != _PROFILE:
        from conformkit.spec.clauses import UnknownClauseError, check_selection

        try:
            check_selection(_only(config), profile)
        except (UnknownClauseError, ValueError) as error:
            raise pytest.UsageError(str(error)) from None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect this package from the law, not from its files, which pytest would import a second time."""
    if path.resolve() == _PACKAGE:
        return ConformanceDirectory.from_parent(parent, path=path)
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker."""
    bench = config.stash.get(_BENCH, None)
    if bench is not None:
        bench.close()


class ConformanceDirectory(pytest.Directory):
    """`conformkit.conformance`: holds the folder of the suite."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield the folder of the suite."""
        yield SuiteDirectory.from_parent(self, path=self.path / "suite")


class SuiteDirectory(pytest.Directory):
    """One file per document of the law."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield one file per document."""
        bench = _bench(self.config)
        for document in dict.fromkeys(clause.document for clause in bench.clauses()):
            path = self.path / f"test_{document}.py"
            yield ClauseFile.from_parent(self, path=path, nodeid=_pasteable(path, self.config.rootpath))


class ClauseFile(pytest.File):
    """The clauses of one document."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the selected clauses."""
        document = self.path.stem.removeprefix("test_")
        for clause in _bench(self.config).clauses():
            if clause.document == document:
                item = ClauseItem.from_parent(self, name=clause.id)
                item.expect(self.config.stash.get(_KNOWN, {}))
                yield item


class ClauseItem(pytest.Item):
    """One clause."""

    def expect(self, known: Mapping[str, str]) -> None:
        """Expect the failure that a baseline lists; a clause that was blocked may not fail now."""
        from conformkit.conformance.api.embed import ClauseBroken

        if known.get(self.name, "blocked") not in ("blocked", "skipped"):
            file = self.config.getoption("--conform-baseline")
            reason = f"known, in {file}; if it passes: conform run --update-baseline"
            self.add_marker(pytest.mark.xfail(reason=reason, strict=False, raises=ClauseBroken))

    def runtest(self) -> None:
        """Judge, and turn the verdict into a pytest outcome."""
        from conformkit.conformance.binding.toml_nodes import ConfigError
        from conformkit.conformance.driver.errors import IsolationUnavailable
        from conformkit.conformance.engine.finding import LoadFailure

        bench = _bench(self.config)
        try:
            result = bench.result(self.name)
        except LoadFailure as failure:
            problem = f"{bench.request.impl} could not be loaded: {failure.problem}"
            self._end(3, problem, failure.where, *failure.advice)
        except ConfigError as error:
            self._end(3, str(error))
        except IsolationUnavailable as reason:
            self._end(4, str(reason), *reason.advice)
        if result.output:
            self.add_report_section("call", "implementation printed", result.output)
        bench.settle(self.name)

    def _end(self, code: int, *lines: str) -> NoReturn:
        """End the run as `conform run` would. An xdist worker can't end it: there each item fails."""
        text = "\n".join(line for line in lines if line)
        if hasattr(self.config, "workerinput"):
            pytest.fail(text, pytrace=False)
        pytest.exit(text, returncode=code)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the verdict's sentences instead of a traceback of the kit."""
        from conformkit.conformance.api.embed import ClauseBroken

        if isinstance(excinfo.value, ClauseBroken):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the location and title of the test."""
        from conformkit.spec.clauses import clause

        return self.path, None, f"{self.name}: {clause(self.name).title}"


def _known(path: Path) -> Mapping[str, str]:
    from conformkit.conformance.report.baseline import NotABaseline, read_baseline

    try:
        return read_baseline(path)
    except (OSError, NotABaseline) as error:
        message = f"--conform-baseline: {path} cannot be used: {error}"
        raise pytest.UsageError(message) from None


def _bench(config: pytest.Config) -> EmbeddedSuite:
    if _BENCH not in config.stash:
        from conformkit.conformance.api.embed import EmbeddedSuite
        from conformkit.conformance.engine.request import RunRequest
        from conformkit.spec.clauses import Level

        option = config.getoption
        if not option("--conform-impl"):
            pytest.exit("say which implementation to judge: --conform-impl NAME|PATH", returncode=4)
        request = RunRequest(
            impl=option("--conform-impl"), profile=option("--conform-profile"), level=Level(option("--conform-level")),
            only=_only(config), seed=option("--conform-seed"), isolation=option("--conform-isolation"),
            config=option("--conform-config"), folder=config.invocation_params.dir,
        )  # fmt: skip
        config.stash[_BENCH] = EmbeddedSuite(request)
    return config.stash[_BENCH]


def _pasteable(path: Path, root: Path) -> str:
    """Return an id with which pytest finds the file again; by itself it names files outside its root by half a path."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _only(config: pytest.Config) -> tuple[str, ...]:
    return tuple(prefix for item in config.getoption("--conform-only") for prefix in item.split(",") if prefix)
