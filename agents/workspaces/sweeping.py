"""Removes workspaces that nobody needs: of a conversation that is deleted, and those unused for long."""

import logging
import shutil
import time
from pathlib import Path

from agents.workspaces.directory import place

logger = logging.getLogger(__name__)


def forget(top: Path, owner_id: int, session_id: int) -> None:
    """Remove the workspace of one conversation, if it has one here."""
    shutil.rmtree(place(top, owner_id, session_id), ignore_errors=True)


def sweep(top: Path, *, keep_s: float) -> int:
    """Remove what was not used for so long, and return how many those were. Another process may do the same."""
    if not top.is_dir():
        return 0
    before, gone = time.time() - keep_s, 0
    for owner in top.iterdir():
        for root in owner.iterdir() if owner.is_dir() else ():
            if _used(root) < before:
                shutil.rmtree(root, ignore_errors=True)
                gone += 1
    if gone:
        logger.info("%d unused workspaces removed", gone)
    return gone


def _used(root: Path) -> float:
    """Return when it was last used, as time.time() does."""
    for path in (root / "about.json", root):
        try:
            return path.stat().st_mtime
        except OSError:
            continue
    return time.time()
