"""What every page says of skills."""

import logging
from typing import Any

from django import template
from django.db import InterfaceError, OperationalError

from agents.models.skill import SkillRevision

logger = logging.getLogger(__name__)
register = template.Library()


@register.simple_tag
def skills_waiting(person: Any) -> int:
    """Return how many suggestions wait for this person to decide. One statement.

    0 if they cannot be read: no page fails for a badge.
    """
    if not person.is_authenticated:
        return 0
    mine = SkillRevision.objects.in_scope(person.pk)
    try:
        return int(mine.filter(status=SkillRevision.Status.PENDING_APPROVAL, skill__deleted_at=None).count())
    except (OperationalError, InterfaceError):  # the page that says so has this badge too
        logger.warning("suggested skills are not counted, they cannot be read")
        return 0
