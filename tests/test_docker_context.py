"""Tests that the images can copy what they ask for out of the build context."""

import re
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
DOCKERFILES = ["deploy/dataflow.Dockerfile", "deploy/train.Dockerfile"]


def is_sent(path: str, rules: list[str]) -> bool:
    """Whether Docker sends a file to the build: the last rule that matches decides."""
    is_ignored = False
    names = [PurePosixPath(path), *PurePosixPath(path).parents][:-1]
    for rule in rules:
        pattern = rule.removeprefix("!")
        # `*` does not cross a slash, and `**/` stands for any folders or none.
        expression = re.escape(pattern).replace(r"\*\*/", "(.*/)?")
        expression = expression.replace(r"\*", "[^/]*")
        if any(re.fullmatch(expression, str(name)) for name in names):
            is_ignored = not rule.startswith("!")
    return not is_ignored


def rules_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def copied(dockerfile: str) -> list[str]:
    """What the steps COPY read of the build context."""
    steps = re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
    return [source for step in steps for source in step.split()[:-1]]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_an_image_copies_is_sent_to_its_build(name):
    rules = rules_of((ROOT / ".dockerignore").read_text())
    sources = copied((ROOT / name).read_text())
    assert len(sources) > 5
    for source in sources:
        assert (ROOT / source).exists(), source
        assert is_sent(source, rules), f"{source} is left out by .dockerignore"
