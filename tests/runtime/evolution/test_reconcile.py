import pytest

from agents.runtime.evolution.likeness import canonical, cosine, counts, uncounted, words
from agents.runtime.evolution.proposals import Action, Known, Proposal, Review, Spec, described, slug
from agents.runtime.evolution.reconcile import Reconciled, reconcile, text_of
from tests.runtime.evolution.candidates import LIBRARY, spec


def new(made: Spec) -> Proposal:
    return Proposal(action=Action.CREATE, spec=made)


def plain(name: str, description: str = "Does something of its own", *steps: str) -> Spec:
    return spec(name, description, f"When {name} is due.", *(steps or ("Look first.", f"Do {name}.")))


def came(*proposals: Proposal, known=LIBRARY, vectors=None) -> Reconciled:
    return reconcile(Review(proposals=proposals), known, vectors)


def outline(made: Reconciled) -> list[tuple[str, str]]:
    return [(p.action.value, p.name) for p in made.proposals]


@pytest.mark.parametrize(
    "name", ["trip-planner-v2", "Trip planner: weekend", "trip-planner (short)", "trip planner", "Trip-Planner v3"]
)
def test_evolution_5_6_a_name_with_something_behind_it_becomes_a_change_of_the_skill(name: str) -> None:
    made = came(new(plain(name)))
    assert outline(made) == [("update", "trip-planner")]
    (proposal,) = made.proposals
    assert proposal.note.startswith("merged into trip-planner because")
    assert proposal.spec is not None and proposal.spec.name == "trip-planner"


def test_the_longest_name_is_the_parent() -> None:
    known = (*LIBRARY, Known(name="trip-planner-rail", description="By rail", changeable=True))
    assert outline(came(new(plain("trip-planner-rail-2")), known=known)) == [("update", "trip-planner-rail")]


@pytest.mark.parametrize(
    ("name", "parent"),
    [("compare 3 offers", "compare-multiple-offers"), ("Compare two offers", "compare-multiple-offers"),
     ("三个城市比较", "城市比较"), ("多城市比较", "城市比较")],
)  # fmt: skip
def test_a_name_that_differs_in_how_many_is_the_same_skill(name: str, parent: str) -> None:
    assert outline(came(new(plain(name)))) == [("update", parent)]


def test_words_in_common_make_one_of_two_in_english_and_in_chinese() -> None:
    english = spec("travel planning", "Plans a trip from dates and wishes", "Use it when somebody travels.", "a", "b")
    made = came(new(english))
    assert outline(made) == [("update", "trip-planner")]
    assert "words" in made.proposals[0].note
    chinese = spec("比较各地", "按人口和气候比较城市", "比较城市时。", "查人口。", "查气候。")
    assert outline(came(new(chinese))) == [("update", "城市比较")]
    other = spec("翻译合同", "把合同译成英文", "需要译文时。", "读合同。", "翻译。")
    assert outline(came(new(other))) == [("create", "翻译合同")]


def test_vectors_find_what_words_do_not() -> None:
    made = plain("itinerary maker", "Lays out journeys")
    vectors = {
        text_of(slug(made.name), described(made)): (1.0, 0.0),
        text_of("trip-planner", LIBRARY[0].description): (0.9, 0.1),
    }
    assert outline(came(new(made))) == [("create", "itinerary-maker")]
    merged = came(new(made), vectors=vectors)
    assert outline(merged) == [("update", "trip-planner")]
    assert "mean nearly the same" in merged.proposals[0].note


def test_what_says_the_same_twice_in_one_review_is_kept_once() -> None:
    one = plain("letter a", "Writes", "Read.", "Write.")
    other = Spec(name="quite different", description="x", when_to_use=one.when_to_use, steps=one.steps)
    made = came(new(one), new(other), new(plain("Letter-A", "again", "x", "y")))
    assert outline(made) == [("create", "letter-a")]
    assert [refused.code for refused in made.refused] == ["duplicate", "duplicate"]


def test_a_second_candidate_for_the_same_skill_is_dropped_and_one_beside_a_change_of_it_too() -> None:
    change = Proposal(action=Action.UPDATE, target="trip-planner", spec=plain("trip-planner"))
    made = came(change, new(plain("trip-planner-v2", "x", "c", "d")))
    assert outline(made) == [("update", "trip-planner")] and [r.code for r in made.refused] == ["duplicate"]
    twice = came(new(plain("trip-planner-v2", "x", "a", "b")), new(plain("trip-planner-v3", "y", "c", "d")))
    assert outline(twice) == [("update", "trip-planner")] and len(twice.refused) == 1


def test_beside_a_deletion_of_its_parent_a_candidate_stays_new() -> None:
    gone = Proposal(action=Action.DELETE, target="trip-planner")
    assert outline(came(gone, new(plain("trip-planner-v2")))) == [
        ("delete", "trip-planner"),
        ("create", "trip-planner-v2"),
    ]


@pytest.mark.parametrize("action", [Action.UPDATE, Action.DELETE])
def test_evolution_5_13_a_skill_that_is_not_managed_here_is_neither_changed_nor_deleted(action: Action) -> None:
    made = came(Proposal(action=action, target="meeting-minutes", spec=plain("meeting-minutes")))
    assert made.proposals == () and [refused.code for refused in made.refused] == ["not_managed"]


def test_nothing_is_made_anew_under_the_name_of_a_skill_that_is_not_managed_here() -> None:
    for name in ("meeting minutes", "Meeting-Minutes", "meeting-minutes-v2"):
        made = came(new(plain(name)))
        assert made.proposals == () and made.refused[0].code == "not_managed"


def test_what_is_not_there_can_be_neither_changed_nor_deleted() -> None:
    made = came(Proposal(action=Action.DELETE, target="nothing"))
    assert [refused.code for refused in made.refused] == ["unknown"]


def test_how_names_are_compared() -> None:
    assert canonical("Trip-Planner v2") == canonical("trip planner V2") == "tripplannerv2"
    assert uncounted("3-cities weather") == uncounted("multi city weather") == "city-weather"
    assert counts("five country table") and counts("两份合同") and not counts("monthly report")
    assert words("The reports of the cities") == ("report", "city")
    assert cosine((1.0, 0.0), (1.0, 0.0)) == 1.0 and cosine((1.0,), (1.0, 2.0)) == 0.0
