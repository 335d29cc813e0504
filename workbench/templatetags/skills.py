"""What every page says of skills."""

from typing import Any

from django import template

from agents.models.skill import SkillRevision

register = template.Library()


@register.simple_tag
def skills_waiting(person: Any) -> int:
    """Return how many suggestions wait for this person to decide. One statement."""
    if not person.is_authenticated:
        return 0
    mine = SkillRevision.objects.in_scope(person.pk)
    return int(mine.filter(status=SkillRevision.Status.PENDING_APPROVAL, skill__deleted_at=None).count())
