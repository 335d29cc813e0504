"""Filters of the transcript's template."""

import json

from django import template

register = template.Library()


@register.filter
def pretty_json(text: str | None) -> str:
    """Return JSON text with indentation for reading; anything else as it is."""
    try:
        return json.dumps(json.loads(text or ""), ensure_ascii=False, indent=2)
    except ValueError:
        return text or ""
