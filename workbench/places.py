"""Where a passage stands, in a person's words. The browser's scripts say it the same way (static/js/cite.js)."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from agents.runtime.knowledge import Place


def words(place: Place) -> str:
    """Return "Page 3, “Costs”", "Sheet Prices, rows 2 to 40", "Lines 4 to 9"; "" for a document without places."""
    say = script_words()
    found = [say["placePage"].format(n=place.page)] if place.page else []
    if place.sheet:
        found.append(say["placeSheet"].format(name=place.sheet))
    if place.rows[0]:
        found.append(_span(say, "placeRow", place.rows))
    if place.lines[0] and not place.page and not place.heading:
        found.append(_span(say, "placeLine", place.lines))
    if place.heading:
        found.append(say["placeHeading"].format(name=place.heading[-1]))
    return say["placeAnd"].join(found)


def script_words() -> dict[str, str]:
    """Return the sentences about places, for templates and scripts."""
    return {
        "placePage": _("Page {n}"),
        "placeSheet": _("Sheet {name}"),
        "placeRow": _("Row {n}"),
        "placeRows": _("Rows {n} to {m}"),
        "placeLine": _("Line {n}"),
        "placeLines": _("Lines {n} to {m}"),
        "placeHeading": _("“{name}”"),
        "placeAnd": _(", "),
    }


def _span(say: Mapping[str, str], word: str, span: tuple[int, int]) -> str:
    first, last = span
    return say[word].format(n=first) if first >= last else say[f"{word}s"].format(n=first, m=last)
