"""The content hash of an article."""

import hashlib

from precis.model.text.normalization import normalise


def content_sha256(article: str) -> str:
    """The sha256 of the normalised article in hexadecimal: equal for two articles that
    differ in white space only.
    """
    return hashlib.sha256(normalise(article).encode()).hexdigest()
