"""Staff's view of files. Rows are written by the store alone: a row changed by hand would no longer fit its blob."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import pgettext_lazy

from artifacts.models import Artifact, Collection, Passage, Version

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin  # takes no parameter when it runs


# The key's own column, so that a list does not look up what it points to
@admin.display(description=pgettext_lazy("admin", "conversation"), ordering="session_id")
def conversation(row: Any) -> str:
    return str(row.session_id or "-")


@admin.display(description=pgettext_lazy("admin", "file version"), ordering="version_id")
def version(row: Any) -> str:
    return str(row.version_id)


class ReadOnlyAdmin(Base):
    """Rows to look at. Contents are not shown: they are the owner's."""

    show_full_result_count = False
    list_per_page = 50
    ordering = ("-id",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Collection)
class CollectionAdmin(ReadOnlyAdmin):
    list_display = ("id", "public_id", "owner", "name", "created_at")
    list_select_related = ("owner",)
    search_fields = ("=public_id", "=owner__username")


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    list_display = ("id", "public_id", "owner", conversation, "name", "last_version", "created_at", "deleted_at")
    list_select_related = ("owner",)
    search_fields = ("=public_id", "=owner__username")


@admin.register(Version)
class VersionAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "artifact", "number", "mime", "size_bytes", "origin", "text_status", "created_at")
    list_select_related = ("owner", "artifact")
    list_filter = ("origin", "text_status")
    search_fields = ("=artifact__public_id", "=sha256")


@admin.register(Passage)
class PassageAdmin(ReadOnlyAdmin):
    """Where passages stand; what they say is the owner's."""

    exclude = ("text", "place")  # a heading is text of the document too
    list_display = ("id", "owner", version, "number", "start", "end")
    list_select_related = ("owner",)
