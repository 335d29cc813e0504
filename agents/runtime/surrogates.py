"""Halves of surrogate pairs: Python strings may hold them, UTF-8, JSON and databases may not."""


def mended(text: str) -> str:
    """Return text that can be encoded: two halves that belong together become their character, others U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
