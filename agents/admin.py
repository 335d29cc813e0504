"""Staff's view of conversations and runs. What people and agents wrote shows only to who may read event bodies."""

import json
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, pgettext_lazy

from agents.models.agent_policy import AgentPolicy
from agents.models.event import Event
from agents.models.job import Job
from agents.models.model_call import ModelCall
from agents.models.run import Inbox, Run
from agents.models.search_entry import Embedding, SearchEntry
from agents.models.session import Fork, Session, State
from agents.models.summary import Summary
from agents.models.summary_draft import SummaryDraft
from agents.models.token_rate import TokenRate
from agents.policyform import NAMES, PolicyForm, known_agents

READ_BODIES = "agents.read_event_bodies"

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin  # takes no parameter when it runs


# A key's own column, so that a list does not look up what it points to; a bare name would have no heading of ours.
@admin.display(description=pgettext_lazy("admin", "conversation"), ordering="session_id")
def conversation(row: Any) -> str:
    return str(row.session_id or "-")


@admin.display(description=pgettext_lazy("admin", "run"), ordering="run_id")
def run_key(row: Any) -> str:
    return str(row.run_id or "-")


@admin.display(description=pgettext_lazy("admin", "search entry"), ordering="entry_id")
def entry(row: Any) -> str:
    return str(row.entry_id)


@admin.display(description=pgettext_lazy("admin", "built from"), ordering="base_id")
def base(row: Any) -> str:
    return str(row.base_id or "-")


class ReadOnlyAdmin(Base):
    """Rows that only the stores write. `bodies` are fields that need the permission to read event bodies."""

    bodies: tuple[str, ...] = ()
    show_full_result_count = False
    list_per_page = 50
    ordering: ClassVar[Any] = ("-id",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        left_out = self.exclude or ()
        names = list(self.fields or [f.name for f in self.model._meta.fields if f.name not in left_out])
        return names if request.user.has_perm(READ_BODIES) else [name for name in names if name not in self.bodies]


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    bodies = ("title", "state")
    list_display = ("id", "owner", "thread_id", "agent", "last_position", "head_fork", "active_at", "deleted_at")
    list_select_related = ("owner",)
    list_filter = ("agent",)
    search_fields = ("=thread_id", "=owner__username")
    ordering = ("-active_at", "-id")


@admin.register(Fork)
class ForkAdmin(ReadOnlyAdmin):
    list_display = ("id", conversation, "number", "parent", "shared_position", "created_at")
    search_fields = ("=session__thread_id",)


@admin.register(State)
class StateAdmin(ReadOnlyAdmin):
    bodies = ("value",)
    list_display = ("id", "scope", "owner", "agent", "key", "changed_at")
    list_select_related = ("owner",)
    list_filter = ("scope",)


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    bodies = ("error_message",)
    list_display = ("id", "owner", conversation, "client_id", "agent", "model", "status", "error_code", "started_at")
    list_select_related = ("owner",)
    list_filter = ("status", "agent", "origin")
    search_fields = ("=client_id", "=session__thread_id", "=owner__username")


@admin.register(Inbox)
class InboxAdmin(ReadOnlyAdmin):
    bodies = ("payload",)
    list_display = ("id", "owner", conversation, "client_id", "kind", "created_at", "consumed_at")
    list_select_related = ("owner",)
    list_filter = ("kind",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    bodies = ("payload",)
    list_display = ("id", "owner", conversation, "position", "fork", run_key, "type", "author", "tokens", "at")
    list_select_related = ("owner",)
    list_filter = ("type",)
    search_fields = ("=event_id", "=session__thread_id")


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = (
        "id", "owner", run_key, "purpose", "provider", "model", "prompt_tokens", "cached_tokens",
        "completion_tokens", "ttft_ms", "latency_ms", "error_code", "started_at",
    )  # fmt: skip
    list_select_related = ("owner",)
    list_filter = ("purpose", "provider", "model")
    search_fields = ("=call_id", "=run__client_id")


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Staff may delete a job: that is how a dead one is put away. What an exception says may quote a person."""

    bodies = ("error_message",)
    list_display = ("id", "kind", "owner", conversation, "status", "attempts", "next_at", "error_code", "created_at")
    list_select_related = ("owner",)
    list_filter = ("status", "kind")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return Base.has_delete_permission(self, request, obj)


@admin.register(SearchEntry)
class SearchEntryAdmin(ReadOnlyAdmin):
    """The words of an entry are the words of its text."""

    bodies = ("terms",)
    list_display = ("id", "owner", "kind", "ref", "group_id", "position", "length", "created")
    list_select_related = ("owner",)
    list_filter = ("kind",)


@admin.register(Embedding)
class EmbeddingAdmin(ReadOnlyAdmin):
    bodies = ("vector",)
    list_display = (entry, "owner", "kind", "group_id", "model")
    list_select_related = ("owner",)
    list_filter = ("kind", "model")
    ordering = ("-pk",)


@admin.register(Summary)
class SummaryAdmin(ReadOnlyAdmin):
    bodies = ("text", "citations")
    list_display = (
        "id", "owner", conversation, "filter_key", "fork", "position", base, "covered_events", "tokens", "source",
        "summarizer", "model", "created_at",
    )  # fmt: skip
    list_select_related = ("owner",)
    list_filter = ("source", "summarizer", "model")
    search_fields = ("=summary_id", "=session__thread_id", "=owner__username")

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return ["report_lines" if name == "report" else name for name in super().get_fields(request, obj)]

    @admin.display(description=pgettext_lazy("admin", "report"))
    def report_lines(self, row: Summary) -> str:
        return format_html("<pre>{}</pre>", json.dumps(row.report, indent=2, ensure_ascii=False))


@admin.register(SummaryDraft)
class SummaryDraftAdmin(ReadOnlyAdmin):
    bodies = ("text",)
    list_display = ("id", "owner", conversation, "filter_key", "base", "read_chars", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("=session__thread_id", "=owner__username")


@admin.register(AgentPolicy)
class AgentPolicyAdmin(Base):
    form = PolicyForm
    list_display = ("agent", "values", "changed_at")
    ordering = ("agent",)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return ((None, {"fields": ("agent", *NAMES)}),)

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **more: Any) -> Any:
        return PolicyForm  # its fields are made with the agent's own values, so there is nothing to choose from here

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if obj.agent not in known_agents():
            told = gettext("No agent here has the name %(agent)s: the policy holds once there is one.")
            messages.warning(request, told % {"agent": obj.agent})


@admin.register(TokenRate)
class TokenRateAdmin(ReadOnlyAdmin):
    list_display = ("id", "provider", "model", "calls", "updated_at")
    list_filter = ("provider",)
