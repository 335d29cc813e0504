"""Staff's view of keys and links. No secret is stored, so none is shown; staff may revoke a key or delete a row."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import pgettext_lazy

from workbench import memoryadmin, reviewadmin, skilladmin  # noqa: F401 - register what they hold
from workbench.models import ApiToken, SignInLink

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin  # takes no parameter when it runs


class NoEditAdmin(Base):
    """Rows that are made elsewhere and never edited."""

    show_full_result_count = False
    list_select_related = ("owner",)
    exclude = ("digest",)
    ordering = ("-id",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(NoEditAdmin):
    list_display = ("id", "owner", "name", "prefix", "scope", "created_at", "last_used_at", "revoked_at")
    list_filter = ("scope",)
    search_fields = ("=prefix", "=owner__username")
    actions = ("revoke",)

    @admin.action(description=pgettext_lazy("admin", "Revoke selected keys"), permissions=["delete"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        tokens.filter(revoked_at=None).update(revoked_at=timezone.now())


@admin.register(SignInLink)
class SignInLinkAdmin(NoEditAdmin):
    list_display = ("id", "owner", "created_at", "expires_at", "used_at")
