"""The options of `precis summarize --text FILE`, which prints a summary."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model.config import flag
from precis.model.errors import UsageError

STANDARD_INPUT = "-"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneDocumentOptions:
    """One document"""

    text: str = flag(
        "",
        "one document, plain text in UTF-8, in place of --corpus and --output; its "
        "summary is printed. - reads the standard input",
        metavar="FILE",
        is_common=True,
    )
    json: bool = flag(
        False, "with --text: print the row of the document as one line of JSON"
    )

    def __post_init__(self) -> None:
        if self.json and not self.text:
            raise UsageError(
                "--json prints the row of one document; name its file, as in "
                "`precis summarize --text article.txt --json`, or - for the standard "
                "input"
            )


def split_document(
    values: Mapping[str, Any],
) -> tuple[OneDocumentOptions, dict[str, Any]]:
    """The flags of one document, and those of the summary."""
    names = {field.name for field in dataclasses.fields(OneDocumentOptions)}
    of_document = {name: values[name] for name in values if name in names}
    others = {name: values[name] for name in values if name not in names}
    return OneDocumentOptions(**of_document), others
