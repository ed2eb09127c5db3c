"""Takes the text out of HTML, by resiliparse, which the extra `web` installs."""

import html
import re
from itertools import accumulate

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse import encoding as encodings

_TAG = re.compile(r"<[a-z/!]", re.I)
_PAGE = re.compile(r"<(?:html|head|body)\b|<!doctype", re.I)
_TITLE = re.compile(r"<title\b[^>]*>([^<]+)", re.I)
_BLOCK = re.compile(r"<(?:p|div|br|li|td|pre|h[1-6])\b", re.I)
_BLANK_LINES = re.compile(r"\n\s*\n")
# A line of a page that has sentences, not the words of a menu.
_PROSE = re.compile(r"^(?:.{100,}|.{39,}[.!?:;…。！？\"'”’»)])$", re.M)
# The parser takes a second or two for a tag with as many attributes, and for a page
# whose tags have this sum of depths: 50,000 tags of an average depth of 400.
_MOST_ATTRIBUTES, _MOST_LEVELS = 1_000, 20_000_000
# Tags with fewer characters and pages with fewer tags are fast in any case.
_LONG_TAG, _MANY_TAGS = 8_000, 6_000
_WITHOUT_TEXT = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|select)\b.*?(?:</\1\b[^>]*>|\Z)", re.I | re.S
)
# Tags that nest; other elements end where the next one of their kind begins.
_NESTED = re.compile(
    r"<(/(?!body\b|html\b))?(?!/|(?:a|area|base|br|col|dd|dt|hr|img|input|li|link|meta|"
    r"optgroup|option|p|param|source|tbody|td|tfoot|th|thead|tr|wbr)\b)[a-z]",
    re.I,
)
_ATTRIBUTE = (
    r"[\s/]*+[^\s\"'<>=/]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'<>]++))?+"
)
_MANY_ATTRIBUTES = re.compile(f"[a-z](?:{_ATTRIBUTE}){{{_MOST_ATTRIBUTES}}}", re.I)


def to_text(source: str) -> str:
    """The text of HTML, with a blank line between paragraphs.

    A page loses its menus, advertisements and other parts that repeat on each page of
    a site. Of a fragment such as `<p>One.</p>` all text is kept; its blank lines
    separate paragraphs if no tags do. In a text without tags only entities such as
    `&amp;` are replaced.

    Raises:
      ValueError: the page is nested so deeply, or has a tag with so many attributes,
          that it would take minutes.
    """
    if not _TAG.search(source):
        return html.unescape(source)
    tags = source.split("<")
    if any(len(tag) > _LONG_TAG and _MANY_ATTRIBUTES.match(tag) for tag in tags):
        raise ValueError(
            f"a tag of the page has {_MOST_ATTRIBUTES:,} attributes or more"
        )
    if len(tags) > _MANY_TAGS:
        source = _WITHOUT_TEXT.sub("", source)
        steps = (-1 if tag[1] else 1 for tag in _NESTED.finditer(source))
        levels = accumulate(steps, lambda level, step: max(level + step, 0))
        if sum(levels) > _MOST_LEVELS:
            raise ValueError("the elements of the page are nested too deeply")
    is_page = bool(_PAGE.search(source))
    if not is_page and not _BLOCK.search(source):
        source = _BLANK_LINES.sub("<p>", source)
    text = extract_plain_text(
        source, main_content=is_page, alt_texts=False, list_bullets=False
    )
    prose = [*_PROSE.finditer(text)] if is_page else []
    return text[prose[0].start() : prose[-1].end()] if prose else text


def title(source: str) -> str | None:
    """The title of a page; None if it has none."""
    found = _TITLE.search(source)
    return " ".join(html.unescape(found[1]).split()) if found else None


def decode(content: bytes, encoding: str = "") -> str:
    """Decodes a page, of which the server, the page or nobody names the encoding.

    Args:
      content: the bytes of the page.
      encoding: the name that the server gave; "" for none.
    """
    # UTF-8 is hardly ever valid by accident, but other encodings are named by mistake.
    if b"\0" not in content and b"\x1b" not in content:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
    if encoding:
        known = encodings.map_encoding_to_html5(encoding)
    else:
        known = encodings.detect_encoding(content, from_html_meta=True)
    return encodings.bytes_to_str(content, known or "utf-8", errors="replace")
