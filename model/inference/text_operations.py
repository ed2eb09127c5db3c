"""`model.text` as TensorFlow operations, for exported graphs: the same strings from
`body` and `normalise`.

The regular expressions of TensorFlow (RE2) know neither look-ahead nor the Unicode
meaning of `\\w`, `\\d` and `\\s`. So boilerplate is sought in a sketch of the text, as
long as the text in characters, in which every digit is `0`, every letter beyond ASCII
`é` and all white space but the plain space a tab:

    text    Zürich (CNN)\u00a0-- Rain fell on ٣ May.
    sketch  Zérich (CNN)→-- Rain fell on 0 May.      → stands for the tab

Two things differ from `model.text`: characters that one side's edition of Unicode does
not know yet, and credits in which one of the four letters ſ K İ ı stands for its plain
one.
"""

import re

import tensorflow as tf
import tensorflow_text

from precis.model.text.boilerplate import BOILERPLATE, MAX_BOILERPLATE_CHARACTERS
from precis.model.text.normalization import INVISIBLE

_LETTER = "é"
_LINE_BREAKS = r"[\n\r\v\f\x1c-\x1e\x{85}\x{2028}\x{2029}]"
# and the plain space
_WHITE = r"\t\n\v\f\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_LONGEST = 1 << 30


def normalise_tensor(texts: tf.Tensor) -> tf.Tensor:
    """`normalise` of texts in UTF-8, string [B] -> string [B]."""
    texts = tf.strings.regex_replace(texts, _LINE_BREAKS, "\n")
    texts = tf.strings.regex_replace(texts, _invisible(), "")
    texts = tensorflow_text.normalize_utf8(texts, "NFC")
    texts = tf.strings.regex_replace(
        tf.strings.regex_replace(texts, "▁", "_"), "␤", " "
    )
    texts = tf.strings.regex_replace(
        texts, f"[ {_WHITE.replace(chr(92) + 'n', '')}]+", " "
    )
    texts = tf.strings.regex_replace(texts, r" ?\n[\n ]*", "\n")
    return tf.strings.regex_replace(texts, r"\A[\n ]+|[\n ]+\z", "")


def body_tensor(texts: tf.Tensor, *, strip_boilerplate: bool = True) -> tf.Tensor:
    """`body` of texts as they were read, string [B] -> string [B]; bytes that are no
    UTF-8 become U+FFFD.
    """
    texts = tf.strings.unicode_transcode(
        texts, input_encoding="UTF-8", output_encoding="UTF-8", errors="replace"
    )
    if strip_boilerplate:
        texts = tf.strings.substr(
            texts,
            _story_start(texts),
            tf.fill(tf.shape(texts), _LONGEST),
            unit="UTF8_CHAR",
        )
    return tf.strings.regex_replace(normalise_tensor(texts), "\n", " ")


def _story_start(texts: tf.Tensor) -> tf.Tensor:
    """How many characters of boilerplate stand before the story: string [B] -> int32
    [B].
    """
    head = tf.strings.substr(
        texts,
        tf.zeros_like(texts, "int32"),
        tf.fill(tf.shape(texts), MAX_BOILERPLATE_CHARACTERS),
        unit="UTF8_CHAR",
    )
    sketch = tf.strings.regex_replace(head, r"\p{Nd}", "0")
    sketch = tf.strings.regex_replace(
        sketch,
        "|".join(rf"[^\x00-\x7f\P{{{kind}}}]" for kind in ("L", "Nl", "No")),
        _LETTER,
    )
    sketch = tf.strings.regex_replace(sketch, f"[{_WHITE}]", "\t")
    anything_but_place, place, no_place = _patterns()

    def strip(rest: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        left = tf.strings.regex_replace(rest, anything_but_place, "")
        without_place = tf.strings.regex_replace(left, place, "")
        left = tf.where(
            tf.strings.regex_full_match(left, no_place), left, without_place
        )
        return left, tf.reduce_any(left != rest)

    rest, _ = tf.while_loop(
        lambda _, is_new: is_new, strip, (sketch, tf.constant(True))
    )
    return tf.strings.length(sketch, unit="UTF8_CHAR") - tf.strings.length(
        rest, unit="UTF8_CHAR"
    )


def _patterns() -> tuple[str, str, str]:
    """Patterns in RE2 over sketches: all boilerplate but tokenised datelines, these,
    and texts that only look like beginning with one.

    A tokenised dateline must not hold certain words, which takes a look-ahead; here its
    place is matched whatever its words, and told by the third pattern. What lies before
    its "(" are single words, so one of them is forbidden if it follows white space or
    the beginning.
    """
    patterns = dict(BOILERPLATE)
    place = patterns.pop("tokenised dateline")
    (forbidden,) = set(re.findall(r"\(\?!(\(\?:[^()]*\))\\b\)", place))
    place = place.replace(rf"(?!{forbidden}\b)", "")
    others = "|".join(map(_for_sketch, patterns.values()))
    no_place = rf"(?s:(?:[^(]*\s)?{forbidden}(?:[^\w{_LETTER}(][^(]*)?\(.*)"
    return rf"\A(?:\s*(?:{others}))+", rf"\A\s*{_for_sketch(place)}", no_place


def _for_sketch(pattern: str) -> str:
    """A pattern of Python's followed by `\\s*`, in RE2 and over sketches."""
    pattern = re.sub(r"\[\^\\W\\d_ ?\]", f"[A-Za-z{_LETTER}]", pattern)
    classes = re.split(r"(\[[^\]]*\])", pattern)  # every second one is a class
    word = rf"\w{_LETTER}"
    pattern = "".join(
        part.replace(r"\w", word if index % 2 else f"[{word}]")
        for index, part in enumerate(classes)
    )
    pattern = pattern.replace(
        r"\b ?", " "
    )  # a letter follows: between it and the word there is a space
    white, optional = r"(?=\s)", r"(?=\s))?"
    if pattern.endswith(white):
        return pattern.removesuffix(white) + r"\s+"
    if pattern.endswith(optional):
        return pattern.removesuffix(optional) + r"\s+|\s*)"
    return pattern + r"\s*"


def _invisible() -> str:
    """What `normalise` removes, as a class of RE2; lone surrogates cannot stand in
    UTF-8.
    """
    characters = INVISIBLE.pattern.replace("\ud800-\udfff", "")
    return (
        "["
        + re.sub("[^-]", lambda found: rf"\x{{{ord(found[0]):x}}}", characters[1:-1])
        + "]"
    )
