"""The library and documents, without a browser: lists, views of a document, changes, and strangers."""

import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from agents.runtime.artifacts import ArtifactRef
from artifacts import indexing, library, rows, saving
from artifacts.models import Passage, Version
from artifacts.rows import Scope, Source
from tests.workbench.conversations import conversation
from workbench import documents, previews
from workbench.documents import Asked

HTMX = {"HTTP_HX_REQUEST": "true"}
REPORT = "# Cold store\n\n## Leaks\n\nThe rack lost 43 kg of gas.\n\n## 方案\n\n方案三在二零三零年之后仍然可用。\n"


@pytest.fixture(autouse=True)
def files(settings: Any, tmp_path: Path) -> Path:
    backend = "django.core.files.storage.FileSystemStorage"
    options = {"location": str(tmp_path / "files")}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {"BACKEND": backend, "OPTIONS": options}}
    return tmp_path / "files"


@pytest.fixture
def client(alice: Any) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def saved(owner: Any, name: str, content: str | bytes, mime: str = "text/markdown", session: Any = None) -> ArtifactRef:
    """Store a document as a tool does: what is text is read at once."""
    data = content.encode() if isinstance(content, str) else content
    scope = Scope(owner=owner.pk, session=session.pk if session else None)
    source = Source(origin=Version.Origin.TOOL, mime=mime)
    return saving.save(scope, name if session else f"user:{name}", io.BytesIO(data), source).ref


def failed(owner: Any, name: str, trouble: str) -> ArtifactRef:
    ref = saved(owner, name, b"%PDF-1.7", "application/pdf")
    pk = rows.find(Scope(owner=owner.pk, session=None), ref.artifact_id, None).pk
    indexing.keep(owner.pk, pk, None, trouble)
    return ref


def page(client: Client, address: str, **how: Any) -> str:
    response = client.get(address, **how)
    assert response.status_code == 200
    return response.content.decode()


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def document(ref: ArtifactRef, **query: Any) -> str:
    return f"/library/{ref.artifact_id}/" + (f"?{urlencode(query)}" if query else "")


# The list


def test_library_lists_documents_with_their_state_in_words(client: Client, alice: Any) -> None:
    saved(alice, "报告.md", REPORT)
    failed(alice, "scan.pdf", "scanned")
    saved(alice, "new.pdf", b"%PDF-1.7", "application/pdf")
    words = text_of(page(client, "/library/"))
    assert "报告.md" in words
    assert "Ready" in words
    assert "It has no text: its pages are pictures (a scan)." in words
    assert "Waiting to be read" in words
    assert "1 of 3 documents are ready" in words


def test_what_cannot_be_read_is_not_said_to_be_searchable_soon(client: Client, alice: Any) -> None:
    saved(alice, "report.md", REPORT)
    failed(alice, "scan.pdf", "scanned")
    words = text_of(page(client, "/library/"))
    assert "1 of 2 documents are ready; the others cannot be read." in words


def test_files_of_conversations_are_in_the_library(client: Client, alice: Any) -> None:
    saved(alice, "notes.md", "a", session=conversation(alice, "t", title="Gas"))
    saved(alice, "notes.md", "a")
    words = text_of(page(client, "/library/"))
    assert words.count("notes.md") == 2
    assert words.count("from a conversation") == 1, "two documents of one name can be told apart"


def test_filters_by_state_type_name_and_text(client: Client, alice: Any) -> None:
    saved(alice, "report.md", REPORT)
    saved(alice, "prices.csv", "a,b\n1,2\n", "text/csv")
    failed(alice, "scan.pdf", "scanned")

    def names(query: str) -> set[str]:
        return set(re.findall(r'class="doc-name"[^>]*>([^<]+)<', page(client, f"/library/?{query}")))

    assert names("") == {"report.md", "prices.csv", "scan.pdf"}
    assert names("state=failed") == {"scan.pdf"}
    assert names("state=ready&type=table") == {"prices.csv"}
    assert names("q=PRICES") == {"prices.csv"}
    assert names("q=rack+lost") == {"report.md"}
    assert names("q=可用") == {"report.md"}
    assert names("q=nowhere") == set()
    assert "No document matches these filters" in page(client, "/library/?q=nowhere")
    assert names("state=strange&type=strange&page=x&collection=x") == {"report.md", "prices.csv", "scan.pdf"}


def test_empty_library_says_what_it_is_for(client: Client) -> None:
    html = page(client, "/library/")
    assert "Give the assistant something to read" in html
    assert 'id="filters"' not in html


def test_pages_of_two_hundred(client: Client, alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PAGE", 2)
    for name in ("a.md", "b.md", "c.md"):
        saved(alice, name, "text")
    first, second = page(client, "/library/"), page(client, "/library/?page=2")
    counted = [html.count('data-act="delete-document"') for html in (first, second)]
    assert counted == [2, 1]
    assert 'href="/library/?page=2"' in first
    assert 'href="/library/"' in second
    assert "page=3" not in second


def test_documents_are_sorted_by_column_and_the_newest_of_equals_comes_first(client: Client, alice: Any) -> None:
    saved(alice, "b.md", "same size")
    saved(alice, "C.csv", "a,b\n1,2\n3,4\n5,6\n", "text/csv")
    saved(alice, "报告.md", "same size")
    saved(alice, "a.md", "x", session=conversation(alice, "t", title="Gas"))
    failed(alice, "D.pdf", "scanned")

    def names(sort: str) -> list[str]:
        return re.findall(r'class="doc-name"[^>]*>([^<]+)<', page(client, f"/library/?sort={sort}"))

    newest = ["D.pdf", "a.md", "报告.md", "C.csv", "b.md"]
    for sort in ("", "-changed", "strange", "--name", "-", "name,size"):
        assert names(sort) == newest, sort
    assert names("changed") == newest[::-1]
    by_name = ["a.md", "b.md", "C.csv", "D.pdf", "报告.md"]
    assert names("name") == by_name, "neither upper case nor the mark of the library counts"
    assert names("-name") == by_name[::-1]
    assert names("kind") == ["D.pdf", "C.csv", "a.md", "报告.md", "b.md"]
    assert names("-kind") == ["a.md", "报告.md", "b.md", "C.csv", "D.pdf"]
    assert names("size") == ["a.md", "D.pdf", "报告.md", "b.md", "C.csv"]
    assert names("-size") == ["C.csv", "报告.md", "b.md", "D.pdf", "a.md"]


def test_the_sort_stays_with_pages_filters_and_collections(
    client: Client, alice: Any, bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "PAGE", 2)
    for name in ("c.md", "a.md", "b.md"):
        saved(alice, name, "text")
    saved(bob, "aa.md", "text")
    shelf = library.make_collection(alice.pk, "Law").id
    first, second = page(client, "/library/?sort=name"), page(client, "/library/?sort=name&page=2")
    shown = [re.findall(r'class="doc-name"[^>]*>([^<]+)<', html) for html in (first, second)]
    assert shown == [["a.md", "b.md"], ["c.md"]]
    assert 'href="/library/?sort=name&amp;page=2"' in first
    assert 'href="/library/?state=failed&amp;sort=name"' in second
    assert f'href="/library/?collection={shelf}&amp;sort=name"' in first
    assert '<option value="name" selected>' in first, "the filter form sends it along"


@pytest.mark.parametrize(
    ("sort", "by_name", "by_changed"),
    [
        ("", ("", "/library/?sort=name"), ("descending", "/library/?sort=changed")),
        ("changed", ("", "/library/?sort=name"), ("ascending", "/library/")),
        ("name", ("ascending", "/library/?sort=-name"), ("", "/library/")),
        ("-name", ("descending", "/library/?sort=name"), ("", "/library/")),
        ("-size", ("", "/library/?sort=name"), ("", "/library/")),
    ],
)
def test_headers_say_how_the_list_is_sorted_and_turn_it_round(
    client: Client, alice: Any, sort: str, by_name: tuple[str, str], by_changed: tuple[str, str]
) -> None:
    saved(alice, "a.md", "text")
    html = page(client, f"/library/?sort={sort}")
    heads = [th for th in re.findall(r"<th .*?</th>", html, re.DOTALL) if 'class="sort"' in th]
    for th, (order, address) in zip(heads, (by_name, by_changed), strict=True):
        assert re.findall(r'aria-sort="(\w+)"', th) == ([order] if order else [])
        assert f'href="{address}"' in th
        assert ("#i-sort" in th) == bool(order)


def test_chinese_page_speaks_chinese(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", REPORT)
    saved(alice, "a.md", REPORT + "\nmore\n")
    client.cookies["django_language"] = "zh-hans"
    for address in ("/library/", "/library/?q=nowhere", document(ref), document(ref, view="diff"), document(ref, v=1)):
        words = text_of(page(client, address).partition("<main")[2].partition("<script")[0].partition(">")[2])
        for english in ("Library", "Ready", "Preview", "Versions", "Restore", "document", "unchanged", "Upload"):
            assert english not in words, (address, english)


def test_rows_come_again_by_id(client: Client, alice: Any, bob: Any) -> None:
    mine, his = saved(alice, "mine.md", "a"), saved(bob, "his.md", "b")
    html = page(client, f"/library/rows/?id={mine.artifact_id}&id={his.artifact_id}&id=x", **HTMX)
    assert "mine.md" in html
    assert "his.md" not in html
    assert html.count("<tr") == 1


# Changes


def test_deleted_documents_leave_the_list_and_come_back_with_undo(client: Client, alice: Any) -> None:
    one, two = saved(alice, "one.md", "a"), saved(alice, "two.md", "b")
    response = client.post("/library/delete/", {"id": [one.artifact_id, two.artifact_id]}, **HTMX)
    assert "2 documents deleted" in response.content.decode()
    assert "one.md" not in page(client, "/library/")
    assert client.get(document(one)).status_code == 404
    assert client.post("/library/restore/", {"id": [one.artifact_id]}, **HTMX).headers["HX-Trigger"]
    assert "one.md" in page(client, "/library/")
    assert client.get(document(one)).status_code == 200


def test_a_document_is_renamed_and_a_taken_name_is_refused_in_words(client: Client, alice: Any) -> None:
    ref = saved(alice, "one.md", "a")
    saved(alice, "two.md", "b")
    assert client.post(f"/library/{ref.artifact_id}/rename/", {"name": "冷库"}, **HTMX).status_code == 204
    assert "冷库.md" in page(client, "/library/")
    response = client.post(f"/library/{ref.artifact_id}/rename/", {"name": "two.md"}, **HTMX)
    assert (response.status_code, "another document" in response.content.decode()) == (422, True)


def test_collections_are_made_filled_renamed_and_emptied(client: Client, alice: Any) -> None:
    ref = saved(alice, "one.md", "a")
    assert client.post("/library/collections/", {"name": "Law"}, **HTMX).status_code == 204
    assert client.post("/library/collections/", {"name": "Law"}, **HTMX).status_code == 422
    shelf = library.collections(alice.pk)[0].id
    assert client.post("/library/move/", {"id": ref.artifact_id, "collection": shelf}, **HTMX).status_code == 204
    assert "one.md" in page(client, f"/library/?collection={shelf}")
    assert client.post(f"/library/collections/{shelf}/rename/", {"name": "法律"}, **HTMX).status_code == 204
    assert "法律" in page(client, "/library/")
    assert client.post("/library/move/", {"id": ref.artifact_id, "collection": "none"}, **HTMX).status_code == 204
    assert "There is nothing in this collection" in page(client, f"/library/?collection={shelf}")
    assert client.post(f"/library/collections/{shelf}/delete/", **HTMX).status_code == 204
    assert library.collections(alice.pk) == ()
    assert "one.md" in page(client, "/library/")


def test_a_document_that_could_not_be_read_is_tried_again(client: Client, alice: Any) -> None:
    ref = failed(alice, "scan.pdf", "not_read")
    assert client.post(f"/library/{ref.artifact_id}/read-again/", **HTMX).status_code == 204
    assert "Waiting to be read" in page(client, "/library/")


# A document


def test_markdown_is_drawn_by_the_sanitiser_of_answers(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", "# Title\n\n<script>alert(1)</script>\n\n![x](https://a.example/x.png)\n")
    html = page(client, document(ref))
    assert "<h3>Title</h3>" in html
    assert "<script>alert" not in html
    assert "<img" not in html.partition("<main")[2]


def test_tables_code_and_pictures_are_drawn(client: Client, alice: Any) -> None:
    table = page(client, document(saved(alice, "a.csv", "name;kg\nrack;43\nnew;7\n", "text/csv")))
    assert re.search(r'<th scope="col"[^>]*>kg</th>', table)
    assert re.search(r'<td[^>]*class="num-cell"[^>]*>43</td>', table)
    code = page(client, document(saved(alice, "a.py", "x = 1  # ``` <b>\n", "text/x-python")))
    assert "tok-" in code
    assert "&lt;b&gt;" in code
    picture = saved(alice, "a.png", b"\x89PNG\r\n\x1a\n", "image/png")
    assert f"/files/{picture.artifact_id}/1/?inline=1" in page(client, document(picture))


def test_html_is_shown_in_a_frame_that_may_do_nothing(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.html", "<h1>Grant</h1><script>alert(1)</script>", "text/html")
    html = page(client, document(ref))
    assert re.search(rf'<iframe[^>]*src="/library/{ref.artifact_id}/frame/1/"[^>]*sandbox ', html)
    assert "<h1>Grant" not in html
    response = client.get(f"/library/{ref.artifact_id}/frame/1/")
    assert response.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    markdown = saved(alice, "a.md", "# a")
    assert client.get(f"/library/{markdown.artifact_id}/frame/1/").status_code == 404


def test_pdf_is_shown_by_the_browser_in_a_frame_that_may_do_nothing(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.pdf", b"%PDF-1.7 bytes", "application/pdf")
    assert f'<iframe class="preview-frame" src="/library/{ref.artifact_id}/frame/1/"' in page(client, document(ref))
    response = client.get(f"/library/{ref.artifact_id}/frame/1/")
    assert response.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert response.headers["Content-Type"] == "application/pdf"
    assert "It is being read." in page(client, document(ref, view="text"))


def test_a_cited_passage_is_marked_and_in_sight(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", REPORT + "\n\n" + "\n\n".join(f"Paragraph {n}. " + "word " * 150 for n in range(200)))
    version = Version.objects.of(alice.pk).get()
    passages = Passage.objects.of(alice.pk).filter(version=version).order_by("number")
    assert passages.count() > 2 * documents.WINDOW
    cited = passages[passages.count() - 5]
    html = page(client, document(ref, v=1, at=f"{cited.start}-{cited.end}"))
    marked = re.search(r'<mark class="hit"[^>]*>(.*?)</mark>', html, re.DOTALL)
    assert marked
    assert cited.text.strip() in marked[1].replace("&#x27;", "'")
    assert html.count('class="passage"') <= documents.WINDOW
    first = re.search(r"passages/\?v=1&amp;first=(\d+)", html)
    assert first
    earlier = page(client, f"/library/{ref.artifact_id}/passages/?v=1&first={first[1]}", **HTMX)
    assert earlier.count('class="passage"') == documents.WINDOW
    assert "<html" not in earlier


def test_a_citation_opens_the_passage_of_its_version_after_a_newer_one_was_saved(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", "# Rent\n\nThe rent is 850 a month.\n")
    cited = Passage.objects.of(alice.pk).get()
    assert saved(alice, "a.md", "# Rent\n\nThe rent is 990 a month.\n").version == 2
    html = page(client, document(ref, v=1, at=f"{cited.start}-{cited.end}"))
    marked = re.search(r'<mark class="hit"[^>]*>(.*?)</mark>', html, re.DOTALL)
    assert marked and "The rent is 850 a month." in marked[1]
    assert "990" not in html


def test_all_of_a_text_is_reached_stretch_by_stretch(alice: Any) -> None:
    ref = saved(alice, "a.md", "\n\n".join(f"Paragraph {n}. " + "word " * 150 for n in range(150)))
    stored = rows.find(Scope(owner=alice.pk, session=None), ref.artifact_id, 1)
    numbers: list[int] = []
    first: int | None = 0
    while first is not None:
        stretch = documents.stretch(alice.pk, stored, Asked(first=first))
        numbers += [piece.number for piece in stretch.pieces]
        first = stretch.later
    assert numbers == list(range(Passage.objects.of(alice.pk).count()))


def test_old_versions_say_so_and_can_be_restored(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", "one two three\n")
    saved(alice, "a.md", "one 2 three\n")
    html = page(client, document(ref, v=1))
    assert "You are looking at version 1; the newest is 2." in text_of(html)
    response = client.post(f"/library/{ref.artifact_id}/restore/1/")
    assert response.headers["Location"] == document(ref, v=3)
    assert previews.whole_text(rows.find(Scope(owner=alice.pk, session=None), ref.artifact_id, 3)) == "one two three\n"
    assert "Edited by you" in page(client, document(ref, view="versions"))


def test_two_versions_are_compared_word_by_word(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", "冷库去年泄漏。\none two\n")
    saved(alice, "a.md", "冷库今年泄漏。\none two\n")
    saved(alice, "a.md", "x\n")
    html = page(client, document(ref, v=2, view="diff", base=1))
    assert "<del>去</del><ins>今</ins>" in html
    assert "+1" in text_of(html)
    assert "selected>version 1" in html
    assert "selected>version 2" in page(client, document(ref, view="diff", base=99))


def test_an_edit_makes_a_version_and_a_late_one_overwrites_nothing(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.md", "one\n")
    address = f"/library/{ref.artifact_id}/edit/"
    assert "<textarea" in page(client, document(ref, view="edit"))
    assert client.post(address, {"text": "two\r\n", "base": 1}).headers["Location"] == document(ref, v=2)
    late = client.post(address, {"text": "three\n", "base": 1}, **HTMX)
    words = text_of(late.content.decode())
    assert late.status_code == 409
    assert "Version 2 was saved while you were writing. Nothing was overwritten." in words
    assert "three" in words
    assert 'name="base" value="2"' in late.content.decode()
    assert client.post(address, {"text": "three\n", "base": 2}, **HTMX).status_code == 200
    texts = [previews.whole_text(rows.find(Scope(owner=alice.pk, session=None), ref.artifact_id, n)) for n in (1, 2, 3)]
    assert texts == ["one\n", "two\n", "three\n"]


def test_what_is_no_text_is_not_edited(client: Client, alice: Any) -> None:
    ref = saved(alice, "a.pdf", b"%PDF-1.7", "application/pdf")
    assert "<textarea" not in page(client, document(ref, view="edit"))
    assert client.post(f"/library/{ref.artifact_id}/edit/", {"text": "x", "base": 1}).status_code == 404


def test_a_document_without_text_says_why(client: Client, alice: Any) -> None:
    words = text_of(page(client, document(failed(alice, "a.pdf", "encrypted"), view="text")))
    assert "This document could not be read" in words
    assert "It is protected by a password." in words
    waiting = saved(alice, "b.pdf", b"%PDF-1.7", "application/pdf")
    assert "It is being read." in page(client, document(waiting, view="text"))


def test_the_panel_gets_a_fragment(client: Client, alice: Any) -> None:
    html = page(client, document(saved(alice, "a.md", "# a")), **HTMX)
    assert "<html" not in html
    assert 'data-act="close-panel"' in html


def test_picker_offers_documents_and_keeps_what_is_chosen(client: Client, alice: Any, bob: Any) -> None:
    chosen, other, his = saved(alice, "a.md", "a"), saved(alice, "b.md", "b"), saved(bob, "c.md", "c")
    html = page(client, f"/library/picker/?q=b&id={chosen.artifact_id}&id={his.artifact_id}", **HTMX)
    assert re.findall(r'value="([0-9a-f-]{36})"( checked)?', html) == [
        (chosen.artifact_id, " checked"),
        (other.artifact_id, ""),
    ]


# Strangers


def test_every_page_asks_a_stranger_to_sign_in(db: None) -> None:
    for address in ("/library/", "/library/rows/", "/library/picker/", f"/library/{REF}/", f"/library/{REF}/passages/"):
        assert Client().get(address).status_code == 302
    assert Client().get(f"/library/{REF}/frame/1/").status_code == 302
    for address in POSTED:
        assert Client().post(address).status_code == 302


def test_foreign_and_unknown_documents_answer_alike(client: Client, bob: Any) -> None:
    ref = saved(bob, "his.html", "secret", "text/html")
    shelf = library.make_collection(bob.pk, "His").id
    for one in (ref.artifact_id, REF):
        for address in ("", "?v=1&view=diff", "passages/?v=1", "frame/1/"):
            assert client.get(f"/library/{one}/{address}").status_code == 404
        for act in ("edit/", "restore/1/", "rename/", "read-again/"):
            assert client.post(f"/library/{one}/{act}", {"base": 1, "text": "x", "name": "x"}).status_code == 404
        for act in ("delete", "restore", "move"):
            assert client.post(f"/library/{act}/", {"id": one, "collection": "none"}).status_code == 404
    for act in ("rename", "delete"):
        assert client.post(f"/library/collections/{shelf}/{act}/", {"name": "x"}).status_code == 404
    assert "His" not in page(client, "/library/")
    assert "his.html" not in page(client, "/library/?q=secret")
    assert library.listing(bob.pk, library.Wanted()).total == 1


REF = "00000000-0000-4000-8000-000000000000"
POSTED = (
    reverse("documents_delete"),
    reverse("documents_restore"),
    reverse("documents_move"),
    reverse("collections"),
    reverse("document_edit", args=[REF]),
    reverse("bring_back", args=[REF, 1]),
    reverse("document_rename", args=[REF]),
    reverse("document_read_again", args=[REF]),
    reverse("collection_rename", args=[REF]),
    reverse("collection_delete", args=[REF]),
)
