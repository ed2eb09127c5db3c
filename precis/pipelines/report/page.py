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
from collections.abc import Mapping, Sequence
from typing import Any

from precis.pipelines.report.documents import ReportedDocument

DOCUMENTS_A_BLOCK = 32


def pack(content: Any) -> str:
    """JSON as base64 of gzip."""
    # Lone surrogates, which no encoding can write, become question marks.
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    data = gzip.compress(text.encode(errors="replace"), mtime=0)
    return base64.b64encode(data).decode()


def render(sections: Mapping[str, Any], documents: Sequence[ReportedDocument]) -> bytes:
    """The page as HTML in UTF-8.

    Args:
      sections: what the template shows besides.
      documents: in the order of the page, for the list and the blocks.
    """
    import jinja2
    from markupsafe import Markup

    folder = importlib.resources.files("precis.pipelines.report")
    style, *scripts = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js", "document.js")
    )
    script = "".join(scripts)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("precis.pipelines.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Beside its details a source repeats much of them, and compresses well.
    packed = [{**each.details(), "source": each.source()} for each in documents]
    starts = range(0, len(packed), DOCUMENTS_A_BLOCK)
    environment.filters["count"] = "{:,}".format
    text = environment.get_template("page.html").render(
        sections,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        list=pack([each.line() for each in documents]),
        blocks=[pack(packed[at : at + DOCUMENTS_A_BLOCK]) for at in starts],
        documents_a_block=DOCUMENTS_A_BLOCK,
    )
    return text.encode(errors="replace")
