"""Filters of the transcript's template."""

import json

from django import template

register = template.Library()


@register.filter
def pretty_json(text: str | None) -> str:
    """Return what was asked, for reading: JSON with indentation, code as it runs and the rest below; else as it is."""
    try:
        asked = json.loads(text or "")
    except ValueError:
        return text or ""
    found = [asked.get(name) for name in ("command", "code")] if isinstance(asked, dict) else []
    code: str = next((one for one in found if isinstance(one, str) and one), "")
    if not code:
        return json.dumps(asked, ensure_ascii=False, indent=2)
    rest = {name: value for name, value in asked.items() if name not in ("command", "code")}
    below = f"\n\n{json.dumps(rest, ensure_ascii=False, indent=2)}" if rest else ""
    return f"{code.rstrip()}{below}"
