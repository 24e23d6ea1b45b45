"""Titles as they stand in addresses."""


def slug(title: str) -> str:
    """A title as it stands in an address."""
    return title.lower().replace(" ", "-")
