"""Staff's view of files. Rows are written by the store alone: a row changed by hand would no longer fit its blob."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from artifacts.models import Artifact, Version

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin  # takes no parameter when it runs


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


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    list_display = ("id", "public_id", "owner", "session_id", "name", "last_version", "created_at", "deleted_at")
    list_select_related = ("owner",)
    search_fields = ("=public_id", "=owner__username")


@admin.register(Version)
class VersionAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "artifact", "number", "mime", "size_bytes", "origin", "text_status", "created_at")
    list_select_related = ("owner", "artifact")
    list_filter = ("origin", "text_status")
    search_fields = ("=artifact__public_id", "=sha256")
