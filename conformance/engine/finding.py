"""Where an implementation is and what it declares: found once in a run, and passed on to whatever needs it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from conformkit.conformance.binding.config import Config, load_config
from conformkit.conformance.driver.location import Location, locate, mentions, mentions_torch
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.silence import Silence
from conformkit.conformance.text import listed

__all__ = ["WHERE_NAMES_ARE", "LoadFailure", "Located", "find"]

WHERE_NAMES_ARE = "give a module's name, a .py file or a folder; names are looked up in the current folder first"


class LoadFailure(Exception):
    """The implementation could not be loaded or bound.

    `problem` is a sentence, `where` the line at fault, `advice` what to do, `output` what it printed; `late`: it timed
    out; `nowhere`: it imports, nothing is declared about it, and nothing of it could be bound.
    """

    def __init__(
        self, problem: str, *, where: str = "", advice: tuple[str, ...] = (), output: str = "", late: bool = False,
        nowhere: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(problem)
        self.problem, self.where, self.advice, self.output, self.late = problem, where, advice, output, late
        self.nowhere = nowhere

    def advised(self, *lines: str) -> LoadFailure:
        """Return the same failure with more advice before its own."""
        return LoadFailure(
            self.problem, where=self.where, advice=(*lines, *self.advice), output=self.output, late=self.late,
            nowhere=self.nowhere,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Located:
    """An implementation that is found and not imported yet: where it is, and what it declares."""

    location: Location
    config: Config
    notes: tuple[str, ...] = ()
    """What readers of the report should know about this."""
    silence: Silence = field(default_factory=Silence, compare=False)
    """What of it gave no answer in this run, in whatever worker."""

    def needs_torch(self) -> bool:
        """Guess without importing anything; a wrong guess costs time, no more."""
        if self.config.framework is not None:
            return self.config.framework == "torch"
        named = any("torch" in (component.path or "") for component in self.config.components.values())
        return named or self.location.path is None or mentions_torch(self.location.path)


def find(request: RunRequest, location: Location | None = None) -> Located:
    """Return where the implementation is, which may be known already, and what its conform.toml declares.

    Raises LoadFailure, ConfigError.
    """
    try:
        location = location or locate(request.impl, request.folder, beyond=not request.forbid_kit_imports)
        location = replace(location, apart=request.forbid_kit_imports)
    except FileNotFoundError as error:
        raise LoadFailure(str(error), advice=(WHERE_NAMES_ARE,)) from None
    config, notes = _declared(request, location)
    return Located(location, replace(config, dtypes=(request.dtype,)) if request.dtype else config, notes)


def _declared(request: RunRequest, location: Location) -> tuple[Config, tuple[str, ...]]:
    """Return what is declared, and what is to be said about that: a file beside others may be about another one."""
    if isinstance(request.config, Config):
        return request.config, ()
    if request.config is not None:
        return load_config(request.config), ()
    config = load_config(_config_folders(location))
    others = _others_than(location, config)
    if not others or config.path is None or location.path is None:
        return config, ()
    name, own = config.path.name, location.path.name
    note = f"{name} beside {own} is about {listed(others, 3)}, not about {own}: not read; --config {name} reads it"
    return Config(), (note,)


def _others_than(location: Location, config: Config) -> list[str]:
    """Return the modules beside a single file that a configuration is about, if that is none of them and uses none.

    What such a configuration has judged would be another file than the one that was named.
    """
    if location.kind != "file" or location.path is None:
        return []
    paths = [one.path for one in config.components.values()] + [one.path for one in config.tools.values()]
    modules = {path.partition(":")[0] for path in paths if path and ":" in path}
    modules |= {config.module} if config.module else set()
    tops = sorted({module.partition(".")[0] for module in modules})
    if any(location.path.stem in module.split(".") for module in modules) or "" in tops:
        return []
    beside = location.path.parent
    if not all((beside / top).is_dir() or (beside / f"{top}.py").is_file() for top in tops):
        return []
    return [] if any(mentions(location.path, top) for top in tops) else tops


def _config_folders(location: Location) -> list[Path]:
    """Return the folders to look for conform.toml in: the implementation's own, then the one around it."""
    if location.path is None:
        return []
    own = location.path if location.path.is_dir() else location.path.parent
    return [own, own.parent] if location.path.is_dir() else [own]
