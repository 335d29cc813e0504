"""Names of ours in addresses."""

import base64
import binascii


class ThreadIdConverter:
    """A client's thread id as one piece of a path. What a path cannot carry ("/", a lone dot) travels as ~base64url."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        name = _unpacked(value) if value.startswith("~") else value
        if "\0" in name:  # no id has it, and the database refuses to look for it
            raise ValueError(value)
        return name

    def to_url(self, value: str) -> str:
        if "/" in value or value.startswith("~") or value in (".", ".."):
            return "~" + base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")
        return value


def _unpacked(value: str) -> str:
    padded = value[1:] + "=" * (-len(value[1:]) % 4)
    try:
        return base64.urlsafe_b64decode(padded.encode()).decode()
    except (binascii.Error, UnicodeError) as e:
        raise ValueError(value) from e
