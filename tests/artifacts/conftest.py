"""Fixtures of this room: people, a conversation, and a storage that is empty at the beginning."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # conftest files are read before Django is ready
    from django.contrib.auth.models import User

    from agents.models.session import Session
    from artifacts.store import DjangoArtifactStore


@pytest.fixture(autouse=True)
def files(settings: Any, tmp_path: Path) -> Path:
    """The folder that the artifacts of one test lie in."""
    folder = tmp_path / "files"
    options = {"location": str(folder), "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
    settings.STORAGES = {
        **settings.STORAGES,
        "artifacts": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options},
    }
    return folder


@pytest.fixture
def anna(transactional_db: Any) -> "User":
    from django.contrib.auth.models import User

    return User.objects.create_user("anna")


@pytest.fixture
def boris(transactional_db: Any) -> "User":
    from django.contrib.auth.models import User

    return User.objects.create_user("boris")


@pytest.fixture
def session(anna: "User") -> "Session":
    from agents.models.session import Session

    return Session.objects.of(anna.pk).create(owner=anna, thread_id="t1", agent="assistant")


@pytest.fixture
def store(anna: "User", session: "Session") -> "DjangoArtifactStore":
    from artifacts.store import DjangoArtifactStore

    return DjangoArtifactStore(owner_id=anna.pk, session_id=str(session.pk))
