"""Staff's view of what is remembered: that there is something, when and where from. Texts need the permission."""

from typing import Any

from django.contrib import admin
from django.utils.translation import pgettext_lazy

from agents.admin import ReadOnlyAdmin, conversation
from agents.models.memory import Memory, MemoryChange, MemoryCursor, MemorySetting, MemoryTombstone


# A key's own column, so that a list does not look up what it points to.
@admin.display(description=pgettext_lazy("admin", "superseded by"), ordering="superseded_by_id")
def superseded_by(row: Any) -> str:
    return str(row.superseded_by_id or "-")


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin):
    bodies = ("text", "topics", "participants", "location")
    list_display = ("id", "owner", "memory_id", "kind", "source", "muted", superseded_by, "used_at", "updated_at")
    list_select_related = ("owner",)
    list_filter = ("kind", "source", "muted")
    search_fields = ("=memory_id", "=owner__username")


@admin.register(MemoryTombstone)
class MemoryTombstoneAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "memory_id", "by", "at")
    list_select_related = ("owner",)
    list_filter = ("by",)
    search_fields = ("=memory_id", "=owner__username")


@admin.register(MemoryChange)
class MemoryChangeAdmin(ReadOnlyAdmin):
    bodies = ("before",)
    list_display = (
        "id", "owner", conversation, "run", "proposed", "verb", "reason", "memory_id", "source", "at", "undone_at"
    )  # fmt: skip
    list_select_related = ("owner",)
    list_filter = ("verb", "reason", "source")
    search_fields = ("=memory_id", "=run", "=owner__username")


@admin.register(MemoryCursor)
class MemoryCursorAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", conversation, "position", "extracted_at", "claimed_by", "claimed_until")
    list_select_related = ("owner",)


@admin.register(MemorySetting)
class MemorySettingAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "enabled", "since")
    list_select_related = ("owner",)
    list_filter = ("enabled",)
