"""Filters of the document's templates."""

import re

from django import template

from workbench import wording
from workbench.documents import Piece

register = template.Library()
_NUMBER = re.compile(r"[-+−]?[€$£¥]?\s?\d[\d\s.,' ]*\s?[%€$£¥]?")


@register.filter
def text_language(piece: Piece) -> str:
    """Return what a passage is mostly written in, as a lang attribute says it; "" if neither English nor Chinese."""
    return wording.language(piece.before + piece.hit + piece.after)


@register.filter
def is_number(cell: str) -> bool:
    """Return whether a cell of a table is to stand to the right."""
    return bool(_NUMBER.fullmatch(cell.strip()))
