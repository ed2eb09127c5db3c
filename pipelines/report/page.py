"""The page: the template, the style sheet, the script and the data in one file.

Documents lie in the page in blocks of some dozens, each compressed and in base64, so
that nothing in them is read as HTML and a block is unpacked when a document of it is
opened. A content security policy lets no request leave the page, and runs no other
script than that of the page.
"""

import base64
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model.errors import UsageError

DOCUMENTS_A_BLOCK = 32
# What the page may take beyond its blocks and its sections.
_SPARE_BYTES = 50_000


class Blocks(NamedTuple):
    """The documents of a page, packed.

    Attributes:
      texts: base64 of a gzipped JSON list each, of `DOCUMENTS_A_BLOCK` documents.
      with_source: of how many documents, from the first on, the source is there.
      with_details: of how many the details are there.
    """

    texts: list[str]
    with_source: int
    with_details: int


def pack(content: Any) -> str:
    """JSON as base64 of gzip."""
    # Lone surrogates, which no encoding can write, become question marks.
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    data = gzip.compress(text.encode(errors="replace"), mtime=0)
    return base64.b64encode(data).decode()


def pack_documents(
    count: int,
    details: Callable[[int], Mapping[str, Any]],
    source: Callable[[int], Mapping[str, Any]],
    *,
    most_bytes: int,
) -> Blocks:
    """Packs documents into blocks that together do not exceed a size.

    Where not all fit, the sources of the last documents are left out first, and then
    their details.

    Args:
      count: of the documents.
      details, source: of a document by its number.
      most_bytes: the size of all blocks.
    """
    starts = range(0, count, DOCUMENTS_A_BLOCK)
    whole: list[str] = []
    bare: list[str] = []
    for start in starts:
        numbers = range(start, min(start + DOCUMENTS_A_BLOCK, count))
        of_block = [details(number) for number in numbers]
        bare.append(pack(of_block))
        sources = map(source, numbers)
        # Beside its details a source repeats much of them, and compresses well.
        whole.append(
            pack(
                [
                    {**each, "source": text}
                    for each, text in zip(of_block, sources, strict=True)
                ]
            )
        )
    chosen = list(bare)
    while chosen and sum(map(len, chosen)) > most_bytes:
        chosen.pop()
    size = sum(map(len, chosen))
    blocks = 0
    while blocks < len(chosen):
        size += len(whole[blocks]) - len(bare[blocks])
        if size > most_bytes:
            break
        chosen[blocks] = whole[blocks]
        blocks += 1
    return Blocks(
        chosen,
        min(count, blocks * DOCUMENTS_A_BLOCK),
        min(count, len(chosen) * DOCUMENTS_A_BLOCK),
    )


def render(
    sections: Mapping[str, Any],
    list_lines: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
    make_blocks: Callable[[int], Blocks],
    *,
    most_bytes: int,
) -> tuple[bytes, Blocks]:
    """The page as HTML in UTF-8, and the documents in it.

    Args:
      sections: what the template shows.
      list_lines: the list of the documents.
      facts: further facts for the script.
      make_blocks: packs the documents into blocks of a size.
      most_bytes: the size of the page.

    Raises:
      UsageError: the page is larger even without the details of any document.
    """
    import jinja2
    from markupsafe import Markup

    script = _text("page.js") + _text("document.js")
    style = _text("page.css")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("precis.pipelines.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    fixed = {
        **sections,
        "style": Markup(style),
        "script": Markup(script),
        "script_hash": digest,
        "list": pack({"documents": list_lines, **facts}),
        "documents_a_block": DOCUMENTS_A_BLOCK,
    }
    template = environment.get_template("page.html")
    empty = template.render(fixed, blocks=Blocks([], 0, 0))
    room = most_bytes - len(empty.encode(errors="replace")) - _SPARE_BYTES
    if room < 0:
        # The list and the sections are never cut.
        raise UsageError(
            f"the page has {(most_bytes - room) / 1e6:.1f} MB with the list of "
            f"{len(list_lines):,} documents alone, and --max_page_mb is "
            f"{most_bytes / 1e6:g}; give a larger one, or fewer --documents"
        )
    blocks = make_blocks(room)
    page = template.render(fixed, blocks=blocks)
    return page.encode(errors="replace"), blocks


def _text(name: str) -> str:
    file = importlib.resources.files("precis.pipelines.report") / name
    return file.read_text(encoding="utf-8")
