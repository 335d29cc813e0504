"""Staff's view of what is learned of runs: how far reviews are, what came of them, what people said of answers."""

from typing import Any

from django.contrib import admin
from django.utils.translation import pgettext_lazy

from agents.admin import ReadOnlyAdmin, conversation
from agents.models.review import Experiment, Feedback, Review, ReviewCursor, Suggestion


# A key's own column, so that a list does not look up what it points to.
@admin.display(description=pgettext_lazy("admin", "version"), ordering="revision_id")
def version(row: Any) -> str:
    return str(row.revision_id or "-")


@admin.display(description=pgettext_lazy("admin", "review"), ordering="review_id")
def review(row: Any) -> str:
    return str(row.review_id)


@admin.register(ReviewCursor)
class ReviewCursorAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", conversation, "position", "declined_until", "tries", "reviewed_at")
    list_select_related = ("owner",)


@admin.register(Review)
class ReviewAdmin(ReadOnlyAdmin):
    bodies = ("came", "words")
    list_display = ("id", "owner", conversation, "result", "reviewer", "at")
    list_select_related = ("owner",)
    list_filter = ("result",)


@admin.register(Suggestion)
class SuggestionAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", review, version)
    list_select_related = ("owner",)


@admin.register(Feedback)
class FeedbackAdmin(ReadOnlyAdmin):
    bodies = ("note",)
    list_display = ("id", "owner", conversation, "run", "thumb", "reasons", "at")
    list_select_related = ("owner",)
    list_filter = ("thumb",)


@admin.register(Experiment)
class ExperimentAdmin(ReadOnlyAdmin):
    bodies = ("record",)
    list_display = ("id", "owner", "slug", version, "started_at", "ended_at")
    list_select_related = ("owner",)
