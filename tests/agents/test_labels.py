"""Who speaks in a text that says so itself."""

import pytest

from agents.stores.labels import marks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann: it is late", ("@ann",)),
        ("Zoë Okafor-Lind: it is late", ("@zoë", "@okafor", "@lind")),
        ("[1:56 pm on 8 May, 2023] Ann: it is late", ("@ann",)),
        ("王小明：预算是四十万", ("@王小", "@小明")),
        ("张三: 好", ("@张三",)),
    ],
)
def test_a_label_gives_marks(text: str, expected: tuple[str, ...]) -> None:
    assert marks(text) == expected


@pytest.mark.parametrize(
    "text", ["", "it is late", "ann: late", "https://example.org", "Ann:", "12:30: we met", "Ann said: late", "好：是"]
)
def test_without_a_label_there_are_none(text: str) -> None:
    assert marks(text) == ()
