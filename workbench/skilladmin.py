"""Staff's view of skills for everyone: what waits, with what it changes; deciding, going back, and who did what.

What people keep for themselves is theirs: none of it is shown here.
"""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import pgettext, pgettext_lazy
from django.views.decorators.http import require_POST

from agents.admin import ReadOnlyAdmin
from agents.models.skill import Skill, SkillAudit, SkillLibrary, SkillRevision, SkillSwitch, SkillUse
from agents.runtime.errors import AgentError
from agents.runtime.skills.skill import SkillScope
from agents.stores.skilllibrary import WAITING, SkillLibraryRows
from workbench import skillproposals, skillwords


class EveryonesAdmin(ReadOnlyAdmin):
    """Rows of everyone's skills."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(owner=None)


@admin.register(Skill)
class SkillAdmin(EveryonesAdmin):
    list_display = ("id", "slug", "active", "enabled", "managed", "created_at")
    list_select_related = ("active",)
    search_fields = ("slug",)
    exclude = ("owner", "key")


@admin.register(SkillRevision)
class SkillRevisionAdmin(EveryonesAdmin):
    """Decided by those who may change revisions; the rest of the staff may read them."""

    change_form_template = "admin/agents/skillrevision/change_form.html"
    list_display = ("id", "skill", "number", "name", "action", "status", "comes_from", "proposed_by", "created_at")
    list_select_related = ("skill", "proposed_by")
    list_filter = ("status", "action")
    search_fields = ("skill__slug", "name")
    ordering: ClassVar[Any] = ("created_at", "id")
    fields = (
        "skill", "number", "parent", "name", "description", "changes", "status", "action", "comes_from", "proposed_by",
        "problem", "words", "evidence", "reports", "decided_by", "comment", "created_at", "promoted_at",
    )  # fmt: skip
    readonly_fields = ("changes", "comes_from")

    @admin.display(description=pgettext_lazy("admin", "where it comes from"))
    def comes_from(self, revision: SkillRevision) -> str:
        return skillwords.source(revision.source)

    @admin.display(description=pgettext_lazy("admin", "changes"))
    def changes(self, revision: SkillRevision) -> SafeString | str:
        """Return what the revision changes in what holds now, or changed in what held before it."""
        base = revision.skill.active if revision.status in WAITING else revision.parent
        found = skillproposals.compared(base, revision)
        if found is None or not found.changes:
            return pgettext("admin", "none in the text")
        drawn = render_to_string("workbench/_document.html#compared", {"compared": found})
        return mark_safe(drawn)  # our own template, which escapes what it shows

    def get_urls(self) -> list[Any]:
        own = [
            path(f"<int:pk>/{verb}/", self.admin_site.admin_view(require_POST(self._view(verb))), name=f"skill_{verb}")
            for verb in ("approve", "reject", "rollback")
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        found = self.get_object(request, object_id)
        may = self._may_decide(request)
        more = {
            "waits": may and found is not None and found.status in WAITING,
            "was_active": may and found is not None and found.status == SkillRevision.Status.ARCHIVED,
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    def _may_decide(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agents.change_skillrevision")

    def _view(self, verb: str) -> Any:
        def decide(request: HttpRequest, pk: int) -> HttpResponse:
            revision = get_object_or_404(self.get_queryset(request).select_related("skill"), pk=pk)
            if not self._may_decide(request):
                self.message_user(request, _("You may not decide about skills."), messages.ERROR)
            else:
                self._done(request, verb, revision)
            return HttpResponseRedirect(reverse("admin:agents_skillrevision_change", args=[pk]))

        return decide

    def _done(self, request: HttpRequest, verb: str, revision: SkillRevision) -> None:
        rows, comment = SkillLibraryRows(None, actor_id=request.user.pk), request.POST.get("comment", "")
        try:
            if verb == "approve":
                rows.approve(revision.pk, comment)
                said = pgettext("admin", "Approved. The next run of everybody can use it.")
            elif verb == "reject":
                rows.reject(revision.pk, comment)
                said = pgettext("admin", "Rejected.")
            else:
                rows.rollback(revision.skill.slug, revision.number)
                said = pgettext("admin", "This version is used again.")
        except AgentError as error:
            said = pgettext("admin", "Nothing was changed: {code}.").format(code=error.code)
            self.message_user(request, said, messages.ERROR)
            return
        self.message_user(request, said)


@admin.register(SkillAudit)
class SkillAuditAdmin(EveryonesAdmin):
    list_display = ("id", "at", "verb", "slug", "number", "actor", "comment")
    list_select_related = ("actor",)
    list_filter = ("verb",)
    search_fields = ("=slug",)
    exclude = ("owner",)


@admin.register(SkillLibrary)
class SkillLibraryAdmin(ReadOnlyAdmin):
    list_display = ("id", "owner", "version")
    list_select_related = ("owner",)


@admin.register(SkillSwitch)
class SkillSwitchAdmin(ReadOnlyAdmin):
    """Who does not use what; of people's own skills there are no such rows."""

    list_display = ("id", "owner", "scope", "slug")
    list_select_related = ("owner",)
    list_filter = ("scope",)


@admin.register(SkillUse)
class SkillUseAdmin(ReadOnlyAdmin):
    """In which runs skills for everyone and bundled ones were used; what people call their own is theirs."""

    list_display = ("id", "owner", "run_id", "scope", "slug", "at")
    list_select_related = ("owner",)
    list_filter = ("scope",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).exclude(scope=SkillScope.MINE.value)
