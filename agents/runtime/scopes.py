"""Scopes, also called filter keys: `/`-separated names, a scope being above all that begin with it and a `/`."""

SEPARATOR = "/"


def sees(scope: str, key: str) -> bool:
    """Return whether scope and key lie on one line: self, ancestor or descendant; an empty one sees everything."""
    if not scope or not key:
        return True
    a, b = scope + SEPARATOR, key + SEPARATOR
    return a.startswith(b) or b.startswith(a)


def in_subtree(scope: str, key: str) -> bool:
    """Return whether key is scope itself or below it; an empty key is everywhere."""
    return not key or not scope or (key + SEPARATOR).startswith(scope + SEPARATOR)
