"""Stand-ins for modules that are not installed and that no component computes with, and an author's own metadata."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

__all__ = ["OwnMetadata", "StandIns", "distribution_of"]

_OF_SCRIPTS = frozenset({
    "wandb", "tensorboard", "tensorboardX", "tqdm", "matplotlib", "seaborn", "plotly", "pandas", "mlflow",
    "comet_ml", "neptune", "clearml", "visdom", "datasets", "nltk", "spacy", "sacrebleu", "sacremoses", "torchtext",
    "tiktoken", "sentencepiece", "requests", "IPython", "ipywidgets", "pytest", "dotenv", "fire", "click", "hydra",
    "omegaconf", "loguru", "colorama", "termcolor", "psutil", "GPUtil", "gdown", "kaggle", "huggingface_hub",
    "evaluate", "rouge_score", "gradio", "streamlit", "torchinfo", "torchsummary", "torchviz", "prettytable",
    "tabulate", "portalocker", "joblib", "absl", "sklearn", "PIL", "cv2", "imageio", "h5py", "lmdb", "boto3",
    "jieba", "transformers", "tokenizers", "yaml", "toml", "codecarbon", "schedulefree",
})  # fmt: skip
"""What scripts log, plot, read and report with."""
_ALL = importlib.metadata.DistributionFinder.Context()
_DISTRIBUTIONS = {
    "cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml", "skimage": "scikit-image",
    "dotenv": "python-dotenv", "hydra": "hydra-core", "absl": "absl-py", "flash_attn": "flash-attn",
    "tensorboardX": "tensorboardX", "bs4": "beautifulsoup4", "attr": "attrs",
}  # fmt: skip
"""By module, what is installed to have it, where that is called otherwise."""


def distribution_of(module: str) -> str:
    """Return what `pip install` is given to have a module."""
    top = module.partition(".")[0]
    return _DISTRIBUTIONS.get(top, top.replace("_", "-"))


class _Anything:
    """Takes every attribute, call and loop, and does nothing: what logs or plots changes no result.

    A call with nothing but a function, a class or, as a progress bar gets it, something to go through, returns that.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self._name}.{name}")

    def __call__(self, *args: Any, **_: Any) -> Any:
        is_bar = self._name.rpartition(".")[2] in {"tqdm", "trange", "track"}
        if args and (is_bar or (len(args) == 1 and isinstance(args[0], type | types.FunctionType))):
            return range(args[0]) if isinstance(args[0], int) else args[0]
        return _Anything(f"{self._name}()")

    def __getitem__(self, key: object) -> Self:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        top = self._name.partition(".")[0]
        raise ModuleNotFoundError(f"No module named {top!r}", name=top)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that were missing, after everything else has been asked. Its `names` were asked for and missing."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def takes(self, missing: str | None) -> bool:
        """Take over for a missing module, if only scripts need it; whether it did."""
        top = (missing or "").partition(".")[0]
        if top not in _OF_SCRIPTS or top in self.names:
            return False
        self.names.append(top)
        return True

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for these modules, and what is in them."""
        if fullname.partition(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return a module of which every attribute stands in for what is not there."""
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is to be run."""


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self.__name__}.{name}")


class OwnMetadata(importlib.metadata.DistributionFinder):
    """Tells code that asks for its own version what its pyproject.toml says, where it is not installed."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._files = [folder / "pyproject.toml" for folder in folders]

    def find_spec(self, *_: object, **__: object) -> None:
        """It has no modules."""

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context = _ALL
    ) -> Iterator[importlib.metadata.Distribution]:
        """Yield the project that is asked for, or all of its folders."""
        for file in self._files:
            name, version = _project(file)
            if name and (context.name is None or _folded(context.name) == _folded(name)):
                yield _Project(name, version)


class _Project(importlib.metadata.Distribution):
    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


def _project(file: Path) -> tuple[str, str]:
    """Return the name and the version in a pyproject.toml; without a version, 0."""
    import tomllib  # noqa: PLC0415 - only code that asks for its own version needs it

    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        return str(project["name"]), str(project.get("version", "0"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", ""


def _folded(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
