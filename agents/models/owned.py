"""Rows that belong to a person: the one place where a query is narrowed to its owner."""

from typing import Any, ClassVar, Generic, Self, TypeVar

from django.conf import settings
from django.db import models

M = TypeVar("M", bound=models.Model)


class OwnedManager(models.Manager[M], Generic[M]):
    """A manager that answers only once it knows whose rows are asked for.

    `of(owner_id)` is for people's requests and jobs on their behalf; `of_everyone()` is for staff, sweeps and admin,
    so that each such place can be found by its name.
    """

    def of(self, owner_id: int) -> models.QuerySet[M]:
        return super().get_queryset().filter(owner_id=owner_id)

    def of_everyone(self) -> models.QuerySet[M]:
        return super().get_queryset()

    def get_queryset(self) -> models.QuerySet[M]:
        raise OwnerRequired(f"{self.model.__name__}.objects needs .of(owner_id) or .of_everyone()")


class OwnerRequired(RuntimeError):
    """A query was made without saying whose rows it is about."""


class Owned(models.Model):
    """A row with an owner. `objects` demands the owner; `all_owners` is what Django itself and the admin use."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    all_owners: ClassVar[models.Manager[Any]] = models.Manager()
    objects: ClassVar[OwnedManager[Self]] = OwnedManager()

    class Meta:
        abstract = True
        base_manager_name = "all_owners"
        default_manager_name = "all_owners"
