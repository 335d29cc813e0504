"""Previews of texts that were made to take long, and comparisons of texts too long for it."""

from typing import Any

import pytest

from artifacts import diff, rows
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
