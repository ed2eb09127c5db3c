"""The options of `precis summarize FILE`, which prints the summary of one document."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model.config import flag
from precis.model.errors import UsageError

STANDARD_INPUT = "-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneDocumentOptions:
    """One document"""

    file: str = flag(
        "",
        "one document, plain text in UTF-8, in place of --corpus and --output; its "
        "summary is printed. - reads the standard input",
        is_positional=True,
        metavar="FILE",
        is_common=True,
    )
    json: bool = flag(
        False, "with FILE: print the row of the document as one line of JSON"
    )

    def __post_init__(self) -> None:
        if self.json and not self.file:
            raise UsageError(
                "--json prints the row of one document; name its file, as in "
                "`precis summarize article.txt --json`, or - for the standard input"
            )


def split_document(
    values: Mapping[str, Any],
) -> tuple[OneDocumentOptions, dict[str, Any]]:
    """The flags of one document, and those of the summary."""
    names = {field.name for field in dataclasses.fields(OneDocumentOptions)}
    of_document = {name: values[name] for name in values if name in names}
    others = {name: values[name] for name in values if name not in names}
    return OneDocumentOptions(**of_document), others
