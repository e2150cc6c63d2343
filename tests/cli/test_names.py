"""One name, one idea: no two classes of the product share a name, nor do two constants that modules export."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "fixtures", "reference", "conformance", "cli")

SAME_IDEA = {
    "Array": "NumPy's array, for the law and for the worker, which must not import the law",
    "Gradients": "what a backward pass gives, on either side of the wire",
    "IGNORED": "the target that does not count, for the law, for the reference, and for the worker's own loop",
    "SCHEMA": "name and version of a JSON form, in the module that writes it",
    "Task": "the copying task, in the law's evidence and in the reference",
    "Tokenizer": "what both kinds of tokenizers promise",
}
"""Names that several modules define on purpose, with what they mean everywhere."""


def test_no_two_classes_or_exported_constants_share_a_name():
    found = _definitions()
    shared = {name: places for name, places in found.items() if len(places) > 1 and name not in SAME_IDEA}
    assert {name: places for name, places in shared.items() if not _contract_and_reference(places)} == {}


def test_each_exception_is_one():
    found = _definitions()
    assert [name for name in SAME_IDEA if len(found[name]) < 2] == []


@cache
def _definitions():
    """Return the places of every class, and of every exported constant or type, by name."""
    found = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            exported = _exported(tree)
            place = str(path.relative_to(ROOT))
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(place)
            for name in _assigned(tree):
                if name in exported:
                    found[name].append(place)
    return found


def _assigned(tree):
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _exported(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in [getattr(target, "id", "") for target in node.targets]:
            return set(ast.literal_eval(node.value))
    return set()


def _contract_and_reference(places):
    """Whether one is a Protocol of the law and the other the reference's class that keeps it."""
    return sorted(place.partition("/")[0] for place in places) == ["reference", "spec"]
