"""Searching conversations: entries of events, the visible line, conversations that are left out, other owners."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from agents import search
from agents.models.search_entry import Embedding, Kind, SearchEntry, Text, add
from agents.models.session import Session
from agents.search import Line, Ranked, Scope, Vector

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def say(owner: Any, group: int, *texts: str, fork: int = 0, first: int = 1) -> None:
    """Enter texts as events `first`, first + 1, ... of a conversation, one entry each, all on one fork."""
    add(
        owner.pk,
        Kind.EVENT,
        group,
        [Text(ref=first + i, position=first + i, text=text, created=NOW, fork=fork) for i, text in enumerate(texts)],
    )


def find(owner: Any, query: str, **more: Any) -> tuple[Ranked, ...]:
    limits = {name: more.pop(name) for name in ("limit", "hits", "vector") if name in more}
    return search.search(Scope(owner_id=owner.pk, kinds=(Kind.EVENT,), **more), query, **limits)


def places(found: Sequence[Ranked]) -> set[tuple[int, int]]:
    return {(ranked.group_id, ranked.ref) for ranked in found}


def embed(owner: Any, vector: list[float]) -> None:
    for entry in SearchEntry.objects.of(owner.pk):
        Embedding.objects.of(owner.pk).create(
            entry=entry, owner_id=owner.pk, kind=entry.kind, group_id=entry.group_id, model=7, vector=vector
        )


def test_a_result_names_the_entry_it_is(alice: Any) -> None:
    pieces = [Text(ref=4, position=7 + i, offset=1_500 * i, text="budget", created=NOW, fork=0) for i in range(2)]
    add(alice.pk, Kind.EVENT, 31, pieces)
    found = find(alice, "budget")
    assert {(r.kind, r.group_id, r.ref, r.position, r.offset) for r in found} == {
        ("event", 31, 4, 7, 0),
        ("event", 31, 4, 8, 1_500),
    }


def test_events_at_the_same_place_of_two_conversations_are_two(alice: Any) -> None:
    say(alice, 1, "budget")
    say(alice, 2, "budget")
    assert places(find(alice, "budget")) == {(1, 1), (2, 1)}


def test_a_passage_of_the_same_number_is_another_text(alice: Any) -> None:
    say(alice, 1, "budget")
    add(alice.pk, Kind.PASSAGE, 1, [Text(ref=1, position=1, text="budget", created=NOW)])
    both = Scope(owner_id=alice.pk, kinds=(Kind.EVENT, Kind.PASSAGE))
    assert {r.kind for r in search.search(both, "budget")} == {"event", "passage"}


def test_of_the_current_conversation_only_the_visible_line_is_found(alice: Any) -> None:
    say(alice, 1, "budget one", "budget two", "budget three")
    say(alice, 1, "budget four", fork=1, first=4)  # an edit after event 2
    say(alice, 1, "budget five", fork=2, first=5)  # a sibling that is not shown
    say(alice, 2, "budget elsewhere", fork=5, first=9)
    line: Line = (1, ((0, 2), (1, 4)))
    assert places(find(alice, "budget", line=line)) == {(1, 1), (1, 2), (1, 4), (2, 9)}
    assert places(find(alice, "budget", line=line, groups=[1])) == {(1, 1), (1, 2), (1, 4)}
    assert places(find(alice, "budget", line=(1, ((0, 1),)))) == {(1, 1), (2, 9)}
    assert places(find(alice, "budget", line=(1, ()))) == {(2, 9)}


def test_neighbours_are_of_the_visible_line_too(alice: Any) -> None:
    say(alice, 1, "the audit", "hidden words")
    say(alice, 1, "visible words", fork=1, first=3)
    assert places(find(alice, "audit", line=(1, ((0, 1), (1, 3))))) == {(1, 1), (1, 3)}
    assert places(find(alice, "audit")) == {(1, 1), (1, 2), (1, 3)}


def test_the_line_of_a_conversation_hides_no_passage(alice: Any) -> None:
    add(alice.pk, Kind.PASSAGE, 1, [Text(ref=70, position=1, text="budget", created=NOW)])
    say(alice, 1, "budget")
    scope = Scope(owner_id=alice.pk, kinds=(Kind.EVENT, Kind.PASSAGE), line=(1, ()), without=[1])
    assert [(r.kind, r.ref) for r in search.search(scope, "budget")] == [("passage", 70)]


def test_the_nearest_vectors_are_of_the_visible_line(alice: Any) -> None:
    say(alice, 1, *["said later, not yet seen"] * 60)
    say(alice, 1, "thirty days' warning", fork=1, first=61)
    embed(alice, [1.0, 0.0])
    near = Vector(model=7, values=(1.0, 0.0))
    assert places(find(alice, "notice period", line=(1, ((1, 61),)), vector=near)) == {(1, 61)}


def test_conversations_that_are_left_out_are_not_found(alice: Any, django_assert_num_queries: Any) -> None:
    kept, gone = (Session.objects.of(alice.pk).create(owner_id=alice.pk, thread_id=name) for name in ("a", "b"))
    Session.objects.of(alice.pk).filter(pk=gone.pk).update(deleted_at=NOW)
    for session in (kept, gone):
        say(alice, session.pk, "budget")
    embed(alice, [1.0, 0.0])
    deleted = Session.objects.of(alice.pk).filter(deleted_at__isnull=False).values_list("pk", flat=True)
    with django_assert_num_queries(1):
        assert places(find(alice, "budget", without=deleted)) == {(kept.pk, 1)}
    assert places(find(alice, "budget", without=[kept.pk])) == {(gone.pk, 1)}
    assert len(find(alice, "budget", without=())) == 2
    near = Vector(model=7, values=(1.0, 0.0))
    assert places(find(alice, "notice", without=deleted, vector=near)) == {(kept.pk, 1)}


def test_no_scope_reaches_another_owner(alice: Any, bob: Any) -> None:
    say(alice, 1, "alice's budget secret", "next to it")
    say(alice, 2, "alice's budget elsewhere")
    say(bob, 3, "bob's budget")
    embed(alice, [1.0, 0.0])
    hers = SearchEntry.objects.of(alice.pk).values_list("group_id", flat=True)
    for scope in (
        {"line": (1, ((0, 99),))},
        {"line": (3, ((0, 99), (0, 99)))},
        {"groups": [1, 2, 3], "line": (1, ((0, 99),))},
        {"groups": hers, "line": (1, ((0, 99),))},
        {"without": [3]},
        {"without": hers, "line": (2, ((0, 99),))},
    ):
        for vector in (None, Vector(model=7, values=(1.0, 0.0))):
            assert places(find(bob, "budget secret", vector=vector, **scope)) <= {(3, 1)}, scope


def test_counts_of_all_serve_where_a_conversation_is_left_out(alice: Any, django_assert_num_queries: Any) -> None:
    say(alice, 1, *["meeting notes"] * 1_100, "meeting of the zebra")
    say(alice, 2, "meeting of the zebra")
    first = find(alice, "meeting zebra", without=[2])
    assert places(first[:1]) == {(1, 1_101)}
    assert places(find(alice, "meeting zebra")[:2]) == {(1, 1_101), (2, 1)}
    assert find(alice, "meeting zebra", without=[2])[0].ref == 1_101


def test_other_words_for_the_same_find_a_text(alice: Any) -> None:
    say(alice, 1, "we bought a film for the children", "nothing of the kind")
    for query in ("who buys it", "which movie", "what do the kids like", "PURCHASED movies"):
        assert find(alice, query)[0].ref == 1, query
    assert find(alice, 'the "movie"') == ()  # what stands in quotation marks is meant as it is


def test_a_speaker_who_is_named_counts(alice: Any) -> None:
    texts = [("Ann: it costs forty", ("@ann",)), ("Ben: it costs forty", ("@ben",))]
    add(
        alice.pk,
        Kind.EVENT,
        1,
        [Text(ref=9 * n, position=9 * n, text=t, created=NOW, marks=m) for n, (t, m) in enumerate(texts, 1)],
    )
    assert find(alice, "what costs forty in Ben's words")[0].ref == 18
    assert find(alice, "what costs forty in Ann's words")[0].ref == 9
