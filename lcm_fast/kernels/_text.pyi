"""Types of the `text` kernel."""

__test__: dict[str, str]

def analyse_terms(text: str) -> list[str]: ...
