"""Filters of the inspector's template."""

from django import template

from workbench import contextwords

register = template.Library()


@register.filter
def number(n: int) -> str:
    """Return the number as every page writes it."""
    return contextwords.number(n)
