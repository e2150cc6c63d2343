"""What SARIF 2.1.0 allows in the objects that the kit writes, as a JSON Schema in our words.

Tests fetch nothing, and no package that they need contains the standard's own schema. So this holds, for each object
that a log of ours contains, the properties and values that OASIS publishes (SARIF 2.1.0 §3, and its schema with
errata 01), and refuses any other, as that schema does.
"""

from __future__ import annotations

from typing import Any

__all__ = ["LOG"]

_TEXT = {"type": "string"}
_BAG = {"type": "object", "properties": {"tags": {"type": "array", "items": _TEXT, "uniqueItems": True}}}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    """Describe an object without further properties; every one may have a property bag."""
    return {
        "type": "object", "additionalProperties": False, "required": required.split(),
        "properties": {**properties, "properties": _BAG},
    }  # fmt: skip


def _list(items: Any, *, unique: bool = False) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": unique}


def _index(lowest: int = -1) -> dict[str, Any]:
    return {"type": "integer", "minimum": lowest}


_MESSAGE = _object("", text=_TEXT, markdown=_TEXT, id=_TEXT, arguments=_list(_TEXT)) | {
    "anyOf": [{"required": ["text"]}, {"required": ["id"]}]
}
_MULTIFORMAT = _object("text", text=_TEXT, markdown=_TEXT)
_REGION = _object(
    "", startLine=_index(1), startColumn=_index(1), endLine=_index(1), endColumn=_index(1), snippet={"type": "object"}
) | {"anyOf": [{"required": [beginning]} for beginning in ("startLine", "charOffset", "byteOffset")]}
_ARTIFACT = _object(
    "", uri={"type": "string", "format": "uri-reference"}, uriBaseId=_TEXT, index=_index(), description=_MESSAGE
)
_PLACE = _object("", artifactLocation=_ARTIFACT, region=_REGION, contextRegion=_REGION) | {
    "anyOf": [{"required": ["artifactLocation"]}, {"required": ["address"]}]
}
_LOCATION = _object("", id=_index(), physicalLocation=_PLACE, message=_MESSAGE)
_CONFIGURATION = _object(
    "", enabled={"type": "boolean"}, level=_LEVEL, rank={"type": "number", "minimum": -1, "maximum": 100}
)
_RULE = _object(
    "id", id=_TEXT, name=_TEXT, shortDescription=_MULTIFORMAT, fullDescription=_MULTIFORMAT, help=_MULTIFORMAT,
    helpUri={"type": "string", "format": "uri"}, defaultConfiguration=_CONFIGURATION,
)  # fmt: skip
_DRIVER = _object(
    "name", name=_TEXT, fullName=_TEXT, version=_TEXT, semanticVersion=_TEXT,
    informationUri={"type": "string", "format": "uri"},
    rules=_list(_RULE, unique=True), notifications=_list(_RULE, unique=True),
)  # fmt: skip
_REFERENCE = _object("", id=_TEXT, index=_index()) | {
    "anyOf": [{"required": [name]} for name in ("index", "guid", "id")]
}
_NOTIFICATION = _object(
    "message", message=_MESSAGE, level=_LEVEL, descriptor=_REFERENCE, associatedRule=_REFERENCE,
    locations=_list(_LOCATION, unique=True),
)  # fmt: skip
_INVOCATION = _object(
    "executionSuccessful", executionSuccessful={"type": "boolean"}, commandLine=_TEXT, exitCode={"type": "integer"},
    toolConfigurationNotifications=_list(_NOTIFICATION), toolExecutionNotifications=_list(_NOTIFICATION),
)  # fmt: skip
_RESULT = _object(
    "message", ruleId=_TEXT, ruleIndex=_index(), message=_MESSAGE, level=_LEVEL, locations=_list(_LOCATION),
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    fingerprints={"type": "object", "additionalProperties": _TEXT},
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
)  # fmt: skip
_RUN = _object(
    "tool", tool=_object("driver", driver=_DRIVER), invocations=_list(_INVOCATION), results=_list(_RESULT),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    language={"type": "string", "pattern": "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$"},
    originalUriBaseIds={"type": "object", "additionalProperties": _ARTIFACT},
)  # fmt: skip
LOG = _object("version runs", version={"const": "2.1.0"}, runs=_list(_RUN), **{"$schema": _TEXT})
"""A whole log."""
