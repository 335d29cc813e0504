"""Previews of texts that were made to take long, and comparisons of texts too long for it."""

import io
from base64 import b64encode
from typing import Any

import pytest

from artifacts import diff, rows, saving
from artifacts.rows import Scope, Stored
from tests.artifacts.finding import upload
from tests.conftest import make_user
from workbench import previews

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice() -> Any:
    return make_user("alice")


def stored(owner: Any, name: str, data: bytes) -> Stored:
    return rows.find(Scope(owner=owner.pk, session=None), upload(owner, name, data).ref.artifact_id, None)


def test_a_markdown_text_that_takes_long_is_cut_where_its_time_is_over(alice: Any) -> None:
    many = b"a\n\n" * (previews.SHOWN_BYTES // 3 - 1)
    shown = previews.preview(stored(alice, "many.md", many))
    assert shown.cut
    assert 0 < shown.html.count("<p>a</p>") < len(many) // 3


def test_a_hostile_paragraph_of_half_a_megabyte_is_shown_as_plain_text(alice: Any) -> None:
    shown = previews.preview(stored(alice, "one.md", b"![" * 200_000))
    assert shown.html == f"<p>{'![' * 200_000}</p>\n" and not shown.cut


def test_a_text_too_long_to_be_compared_is_not_read_for_it(alice: Any) -> None:
    long = stored(alice, "long.txt", b"x\n" * (2 * diff.TEXT_CHARS + 1))
    with pytest.raises(diff.TooLong):
        previews.whole_text(long)


DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="9" height="9"/></svg>'


def made(owner: Any, name: str, data: bytes) -> Stored:
    """Store what a tool wrote; drawings cannot be uploaded."""
    source = rows.Source.of({"kind": "tool", "run_id": "r", "tool_call_id": "c"}, "")
    scope = Scope(owner=owner.pk, session=None)
    return rows.find(scope, saving.save(scope, f"user:{name}", io.BytesIO(data), source).ref.artifact_id, None)


def test_a_drawing_is_shown_as_a_picture_that_can_run_nothing(alice: Any) -> None:
    shown = previews.preview(made(alice, "chart.svg", DRAWING))
    assert shown.picture == f"data:image/svg+xml;base64,{b64encode(DRAWING).decode()}"
    assert not shown.html


def test_a_drawing_with_a_document_type_or_too_long_is_shown_as_text(alice: Any) -> None:
    typed = previews.preview(made(alice, "laughs.svg", b'<!DOCTYPE svg [<!ENTITY a "b">]>' + DRAWING))
    assert not typed.picture and "DOCTYPE" in typed.html
    long = previews.preview(
        made(alice, "long.svg", DRAWING.replace(b"</svg>", b"<g/>" * previews.SHOWN_BYTES + b"</svg>"))
    )
    assert not long.picture and long.cut
