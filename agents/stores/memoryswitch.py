"""A person's switch "Use memories"."""

from datetime import datetime

from django.db import transaction

from agents.models.memory import MemorySetting
from agents.stores.memoryrows import lock


def is_on(owner_id: int) -> bool:
    """Return whether the person's memories are read and written. One statement."""
    return not MemorySetting.objects.of(owner_id).filter(enabled=False).exists()


@transaction.atomic
def turn(owner_id: int, *, on: bool, now: datetime) -> None:
    """Switch it. Only going from off to on sets `since`, so that doing it twice changes nothing."""
    lock(owner_id)
    setting = MemorySetting.objects.of(owner_id)
    if on:
        setting.filter(enabled=False).update(enabled=True, since=now)
    else:
        setting.update_or_create(owner_id=owner_id, defaults={"enabled": False})
