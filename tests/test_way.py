"""How many files of precis an article passes through on its way to its row, and how
often its way changes from one file to another.
"""

import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

# Files that execute a function for one article with extractive summaries: while it is
# read, summarized and written, and in the whole command. The numbers go down only.
MOST_OF_TASK = 45
MOST_OF_COMMAND = 80
# Changes of file in the task: calls of a function that lies in another file than the
# function called before it, in the order in which calls begin.
MOST_CHANGES = 200

ARTICLE = (
    "Rain fell on Oslo on Monday. The mayor, Kari Nordby, said that 40 streets were "
    "closed and 1,200 people had left their homes. Schools stayed open. Trains ran "
    "late, and the airport cancelled 15 flights. Forecasters expect no more rain. "
    "Ferries had left for Nesodden before the storm, and came back in the evening "
    "with all of their passengers. Nobody was hurt. Nordby thanked the crews, who "
    "had worked through the night, and said that her office would look at the "
    "drains of the city before the next winter comes."
)


class Way:
    """Notes the files of precis that execute a function, those of the task, and how
    often the task changes from file to file.
    """

    def __init__(self) -> None:
        import precis

        self.root = os.path.dirname(os.path.dirname(os.path.realpath(precis.__file__)))
        self.names: dict[str, str] = {}
        self.command: set[str] = set()
        self.task: set[str] = set()
        self.last = ""  # the file of the task's last call
        self.changes = 0
        self.worker = 0  # the thread that does the task; no thread is 0

    def note(self, frame, event, _) -> None:
        code = frame.f_code
        name = self.names.get(code.co_filename)
        if name is None:
            name = os.path.relpath(os.path.realpath(code.co_filename), self.root)
            is_own = name.startswith("precis" + os.sep)
            name = self.names[code.co_filename] = name if is_own else ""
        if not name:
            return
        if code.co_qualname == "SummarizeWorker.run":
            self.worker = threading.get_ident() if event == "call" else 0
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        # The code of modules and classes runs when they are imported, and what refuses
        # an import is called by the import system.
        is_import = not code.co_flags & inspect.CO_OPTIMIZED or "importlib" in caller
        if event == "call" and not is_import:
            self.command.add(name)
            if threading.get_ident() == self.worker:
                self.task.add(name)
                self.changes += name != self.last
                self.last = name


def follow(corpus: str, output: str) -> None:
    """Runs the command and prints the files as JSON; in a process of its own."""
    # A profile would make their import slow.
    import apache_beam  # noqa: F401
    import pyarrow.dataset  # noqa: F401

    from precis.pipelines.command_line.cli import main

    way = Way()
    threading.setprofile(way.note)
    sys.setprofile(way.note)
    words = ["--corpus", corpus, "--output", output, "--workers", "1"]
    code = main(["summarize", "--extractive", "lead,frequency", *words])
    sys.setprofile(None)
    print(json.dumps([code, way.changes, sorted(way.task), sorted(way.command)]))


def test_an_article_passes_through_few_files(tmp_path: Path):
    corpus = tmp_path / "one.jsonl"
    corpus.write_text(json.dumps({"article": ARTICLE, "highlights": "Rain fell."}))
    command = [sys.executable, __file__, f"jsonl:{corpus}", str(tmp_path / "output")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    code, changes, task, command = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert len(task) <= MOST_OF_TASK, "\n".join([f"{len(task)} files:", *task])
    assert changes <= MOST_CHANGES
    others = "\n".join(sorted({*command} - {*task}))
    assert len(command) <= MOST_OF_COMMAND, f"{len(command)} files, also {others}"


if __name__ == "__main__":
    follow(*sys.argv[1:])
