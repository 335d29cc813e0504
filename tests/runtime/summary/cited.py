"""A citation for tests."""

from agents.runtime.knowledge import Citation, Place


def citation(id: str) -> Citation:
    return Citation(
        id=id,
        artifact_id="d1",
        version=1,
        name="harvest.pdf",
        start=0,
        end=10,
        place=Place(page=1),
        quote="Wheat rose.",
    )
