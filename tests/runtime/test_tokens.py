import pytest

from agents.runtime.model import FilePart, TextPart
from agents.runtime.tokens import IMAGE_TOKENS, estimate, estimate_parts


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        ("The quick brown fox jumps over the lazy dog. " * 10, 90, 125),
        ("今天天气很好，我们去公园散步吧。" * 10, 90, 170),
        ("Быстрая коричневая лиса прыгает через ленивую собаку. " * 10, 120, 300),
    ],
)
def test_an_estimate_follows_the_script(text: str, low: int, high: int) -> None:
    assert low <= estimate(text) <= high


def test_an_image_costs_what_images_cost_and_another_file_its_note() -> None:
    image = FilePart(artifact_id="a", version=1, name="x.png", mime="image/png", size_bytes=9, media="image")
    paper = FilePart(artifact_id="b", version=1, name="x.pdf", mime="application/pdf", size_bytes=9)
    assert estimate_parts((image,)) == IMAGE_TOKENS
    assert 5 < estimate_parts((paper,)) < 60
    assert estimate_parts((TextPart(text="abcd" * 10), image)) == 10 + IMAGE_TOKENS
