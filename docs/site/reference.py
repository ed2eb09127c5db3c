"""Pages about the commands, made from their parsers."""

import argparse
import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from precis.model.config import flag_info, flag_name
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.parser import Command, command_parser
from precis.pipelines.run.options import ProgressOptions, option_fields, with_dashes

DOCS = Path(__file__).resolve().parents[1]
FOLDER = "commands"
INDEX = f"{FOLDER}/index.md"
# Pages of docs/ that say more about a command.
SEE_ALSO = {
    "prepare": ("CORPORA.md", "MODELS.md"),
    "train": ("MODELS.md",),
    "train-selector": ("MODELS.md",),
    "train-keyphrases": ("MODELS.md",),
    "train-summarizer": ("MODELS.md",),
    "import": ("MODELS.md",),
    "summarize": ("CORPORA.md", "RESULTS.md", "QUALITY.md", "SCHEMA.md"),
    "evaluate": ("FIGURES.md", "METHODS.md", "SCHEMA.md"),
    "report": ("RESULTS.md",),
    "load": ("RESULTS.md",),
    "loaders": ("RESULTS.md",),
    "export": ("MODELS.md",),
    "attention": ("MODELS.md",),
    "verify": ("RESULTS.md",),
    "doctor": ("RUNNING.md",),
    "digest": ("RESULTS.md",),
}
_OVERVIEW = """# Commands

Every command with all its flags, made from the parsers of the command line.
`precis COMMAND --help` shows the common flags, `precis COMMAND --help all` all of them.

| command | what it does |
|---|---|
"""
_FLAGS_ELSEWHERE = (
    "Flags can be read [from a file](../RUNNING.md#configuration-files), and each "
    "command is also a [Python function](../RUNNING.md#python-functions) with the same "
    "names. [Exit codes](../RUNNING.md#exit-codes) are those of every command."
)
_SETTINGS_NOTE = (
    "Lines of a [file](../RUNNING.md#configuration-files) for `--config`, and keywords "
    "of the [Python function](../RUNNING.md#python-functions)."
)
_BEAM_NOTE = (
    "Flags that `precis` does not know go to [Beam](../ENGINES.md), as in "
    "`--runner DataflowRunner`."
)


def reference_pages() -> dict[str, str]:
    """The Markdown of every page, by its path within the site."""
    pages = {INDEX: _overview()}
    for name, command in COMMANDS.items():
        pages[f"{FOLDER}/{name}.md"] = command_page(name, command)
    return pages


def command_page(name: str, command: Command) -> str:
    """The page of a command: usage, examples and a list of flags for each group."""
    option_groups = (*command.option_groups, ProgressOptions)
    parser = command_parser(
        name, command._replace(option_groups=option_groups), shows_all=True
    )
    groups = [
        (group.title or "", group._group_actions)
        for group in parser._action_groups
        if group._group_actions
    ]
    flags = {flag_name(action.dest) for _, actions in groups for action in actions}
    usage = parser.format_usage().removeprefix("usage: ").strip()
    lines = [f"# precis {name}", "", command.summary, ""]
    lines += _block([usage])
    heading = "Example" if len(command.examples) == 1 else "Examples"
    lines += [
        f"{heading}:",
        "",
        *_block([f"precis {name} {words}" for words in command.examples]),
    ]
    lines += [*_common_flags(command), *_see_also(name)]
    if command.uses_beam:
        lines += [_BEAM_NOTE, ""]
    for heading, actions in groups:
        lines += [f"## {_escaped(heading)}", ""]
        for action in actions:
            lines += [*_entry(action, flags), ""]
    if settings := list(_settings(command)):
        lines += ["## Settings without a flag", "", _SETTINGS_NOTE, "", *settings]
    return "\n".join(lines)


def _settings(command: Command) -> Iterator[str]:
    """The settings that are no flags."""
    for field in option_fields(command.option_groups):
        info = flag_info(field)
        if not info.is_flag:
            shown = f"{_linked(with_dashes(info.help), set())}. **Default:** "
            yield f"`{field.name}`{{ #{field.name} }}"
            yield f":   {shown}{_escaped(str(field.default))}\n"


def _overview() -> str:
    rows = [
        f"| [`precis {name}`]({name}.md) | {_escaped(command.summary)} |"
        for name, command in COMMANDS.items()
    ]
    return "\n".join([_OVERVIEW.rstrip(), *rows, "", _FLAGS_ELSEWHERE, ""])


def _block(lines: Sequence[str]) -> list[str]:
    return ["```bash", *lines, "```", ""]


def _common_flags(command: Command) -> list[str]:
    """The flags that `--help` shows, each a link to its entry."""
    names = [
        f"[`{'' if info.is_positional else '--'}{name}`](#{name})"
        for group in command.option_groups
        for field in dataclasses.fields(group)
        for info, name in [(flag_info(field), flag_name(field.name))]
        if info.is_common
    ]
    return [f"Most used: {', '.join(names)}.", ""] if names else []


def _see_also(name: str) -> list[str]:
    links = [f"[{title(page)}](../{page})" for page in SEE_ALSO.get(name, ())]
    return [f"See also {', '.join(links)}.", ""] if links else []


def title(page: str) -> str:
    """The first heading of a page of docs/."""
    with open(DOCS / page, encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").strip()


def _entry(action: argparse.Action, flags: set[str]) -> list[str]:
    """A flag with its value, as the term and the text of a definition list."""
    anchor = flag_name(action.dest)
    text, _, default = (action.help or "").replace("%%", "%").rpartition(" (default: ")
    if not text:
        text, default = default, ""
    shown = _linked(text, flags - {anchor})
    if default:
        shown += f". **Default:** {_escaped(default.removesuffix(')'))}"
    return [f"`{_signature(action)}`{{ #{anchor} }}", f":   {shown}"]


def _signature(action: argparse.Action) -> str:
    """A flag as the help shows it: `--beam_width HYPOTHESES`, `--[no-]pointer`."""
    if not action.option_strings:
        return str(action.metavar)
    if isinstance(action, argparse.BooleanOptionalAction):
        return f"--[no-]{flag_name(action.dest)}"
    names = ", ".join(action.option_strings)
    if action.dest == "help":
        return f"{names} [all]"
    return names if action.nargs == 0 else f"{names} {action.metavar}"


def _linked(text: str, flags: set[str]) -> str:
    """A help text in which flags are code, and those of the page links."""

    def written(match: re.Match[str]) -> str:
        name = match[0].removeprefix("--")
        code = f"`{match[0]}`"
        return f"[{code}](#{name})" if name in flags else code

    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part
        if part.startswith("`")
        else "".join(
            re.sub(r"--[a-z_]+[a-z]", written, piece)
            if piece.startswith("--")
            else _escaped(piece)
            for piece in re.split(r"(--[a-z_]+[a-z])", part)
        )
        for part in parts
    )


def _escaped(text: str) -> str:
    """A text without the characters that Markdown gives a meaning."""
    return re.sub(r"([\\*_<\[\]|])", r"\\\1", text)
