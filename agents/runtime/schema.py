"""A check of tool arguments against the tool's JSON Schema: what a model gets wrong, said so that it can mend it.

Understood: type (one or several), required, properties, additionalProperties false, items, enum, const, anyOf, oneOf,
allOf, nullable, minimum, maximum, minLength, maxLength, minItems, maxItems. Other keywords are left to the tool.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_PROBLEMS = 5
_TYPES: dict[str, tuple[type[Any], ...]] = {
    "object": (Mapping,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}


def problems(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return what does not fit, at most five sentences; [] if everything does."""
    return _check(arguments, schema, "")[:MAX_PROBLEMS]


def _check(value: Any, schema: Mapping[str, Any], path: str) -> list[str]:
    if value is None and schema.get("nullable"):
        return []
    if wrong := _wrong_type(value, schema, path):
        return [wrong]
    found: list[str] = []
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        found.append(f"{_at(path)} must be one of {_list(schema['enum'])}.")
    if "const" in schema and not _same(value, schema["const"]):
        found.append(f"{_at(path)} must be {schema['const']!r}.")
    for one in schema.get("allOf", ()):
        found += _check(value, one, path)
    for word in ("anyOf", "oneOf"):
        choices: Sequence[Mapping[str, Any]] = schema.get(word, ())
        tried = [(bool(_wrong_type(value, choice, path)), _check(value, choice, path)) for choice in choices]
        if tried and all(wrong for _, wrong in tried):
            # What the model meant is most likely the choice of the right type that fails least.
            found += min(tried, key=lambda one: (one[0], len(one[1])))[1]
    if isinstance(value, Mapping):
        found += _check_object(value, schema, path)
    elif isinstance(value, list | tuple):
        found += _check_size(len(value), schema, path, "minItems", "maxItems", "items")
        if isinstance(items := schema.get("items"), Mapping):
            for number, item in enumerate(value):
                found += _check(item, items, f"{path}[{number}]")
    elif isinstance(value, str):
        found += _check_size(len(value), schema, path, "minLength", "maxLength", "characters")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found += _check_size(value, schema, path, "minimum", "maximum", "")
    return found


def _check_object(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> list[str]:
    properties = schema.get("properties", {})
    found = [f"{_at(_join(path, name))} is required." for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        if name in properties:
            # null for something that need not be there means the same as leaving it out
            if item is not None or name in schema.get("required", ()):
                found += _check(item, properties[name], _join(path, name))
        elif schema.get("additionalProperties") is False:
            found.append(f"{_at(_join(path, name))} is unknown; known are {_list(list(properties))}.")
    return found


def _wrong_type(value: Any, schema: Mapping[str, Any], path: str) -> str:
    wanted = schema.get("type")
    if wanted is None:
        return ""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if any(_is(value, name) for name in names):
        return ""
    return f"{_at(path)} must be {' or '.join(names)}, not {_name_of(value)}."


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(name, (object,)))


def _name_of(value: Any) -> str:
    return next((name for name in _TYPES if name != "number" and _is(value, name)), "number")


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _check_size(size: float, schema: Mapping[str, Any], path: str, low: str, high: str, unit: str) -> list[str]:
    unit = f" {unit}" if unit else ""
    if low in schema and size < schema[low]:
        return [f"{_at(path)} must be at least {schema[low]}{unit}."]
    if high in schema and size > schema[high]:
        return [f"{_at(path)} must be at most {schema[high]}{unit}."]
    return []


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _at(path: str) -> str:
    return f'"{path}"' if path else "The arguments"


def _list(values: Sequence[Any]) -> str:
    return ", ".join(repr(v) for v in values[:20]) or "none"
