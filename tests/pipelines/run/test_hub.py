"""Models of the hub by their names, with the real client against a hub on loopback."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import read_table
from support.command_line import contents, exit_code, write_jsonl
from support.processes import closed_port
from support.small_checkpoint import TEXTS, tensors, write_checkpoint, write_tokenizer
from support.small_hub import GATED, LIMITED, SmallHub, small_hub, use_hub

import precis
from precis.model.bundle.manifest import open_stored
from precis.model.errors import JobError, UsageError
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.run import hub as models
from precis.pipelines.run.hub import bundle_folder, local_bundle, resolve_model

TINY = "hf://acme/tiny"
TOKEN = "hf_a_secret"


def _use(patch: pytest.MonkeyPatch, url: str, folder: Path) -> None:
    use_hub(patch, url, folder)
    patch.setenv("PRECIS_CACHE", str(folder / "cache"))
    local_bundle.cache_clear()


def _checkpoint(folder: Path, **changes) -> Path:
    write_checkpoint(folder, **changes)
    write_tokenizer(folder)
    (folder / "flax_model.msgpack").write_bytes(b"not read")
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub whose only client is this module, with two commits of a BART."""
    folder = tmp_path_factory.mktemp("hub")
    with small_hub() as server, pytest.MonkeyPatch.context() as patch:
        _use(patch, server.url, folder)
        patch.setenv("HF_TOKEN", TOKEN)
        server.push("acme/tiny", _checkpoint(folder / "tiny"))
        other = _checkpoint(folder / "other", weights=tensors(seed=2))
        server.push("acme/tiny", other, branch="refs/pr/2")
        pickle = shutil.copytree(folder / "tiny", folder / "pickle")
        (pickle / "model.safetensors").rename(pickle / "pytorch_model.bin")
        server.push("acme/pickle", pickle)
        led = _checkpoint(folder / "led", settings={"model_type": "led"})
        server.push("acme/led", led)
        cut = shutil.copytree(folder / "tiny", folder / "cut")
        weights = (cut / "model.safetensors").read_bytes()
        (cut / "model.safetensors").write_bytes(weights[:-9])
        server.push("acme/cut", cut)
        server.refusals = {"acme/gated": GATED, "acme/busy": LIMITED}
        server.refusals["acme/token"] = (401, "")
        yield server
    local_bundle.cache_clear()


@pytest.mark.parametrize(("name", "message"), read_table("refusals")["hub"])
def test_what_the_hub_lacks_is_refused_before_weights(hub: SmallHub, name, message):
    hub.requests.clear()
    commit = "(@[0-9a-f]{40})?"
    with pytest.raises(UsageError, match=f"^hf://{name}{commit}: {message}") as refusal:
        import_checkpoint(checkpoint=f"hf://{name}")
    assert "\n" not in str(refusal.value) and TOKEN not in str(refusal.value)
    assert not [each for each in hub.requests if "safetensors" in each]


@pytest.mark.slow
def test_a_job_says_what_its_import_says(hub: SmallHub):
    with pytest.raises(UsageError, match="^hf://acme/led@[0-9a-f]{40}: model_type is"):
        local_bundle("hf://acme/led")
    with pytest.raises(JobError, match="acme--cut.*model.safetensors: damaged .*again"):
        local_bundle("hf://acme/cut")
    assert not Path(bundle_folder(resolve_model("hf://acme/cut"))).exists()


@pytest.mark.slow
def test_a_name_is_its_bundle(hub: SmallHub, tmp_path, monkeypatch, capsys):
    flags = {"min_source_words": 0, "search_processes": 1}
    lines = [{"id": f"d{n}", "article": text} for n, text in enumerate(TEXTS)]
    corpus = write_jsonl(tmp_path / "news.jsonl", lines)
    folder, run = tmp_path / "bundle", tmp_path / "run"
    doctor = ("doctor", "summarize", "--corpus", corpus, "--output", "o", "--bundle")
    hub.requests.clear()
    assert exit_code(*doctor, TINY, "--instruction", "Be brief.") == 1
    assert "has no effect where a network writes" in capsys.readouterr().out
    by_name = precis.summarize(corpus=corpus, bundle=TINY, output=run, **flags)
    # Only what an import reads was asked for.
    served = {each.split("/")[-1] for each in hub.requests if "/resolve/" in each}
    settings = {"config.json", "generation_config.json", "tokenizer.json"}
    assert served == {*settings, "model.safetensors"}
    commit = hub.refs["acme/tiny"]["main"]
    name = resolve_model(TINY)
    assert by_name["provenance"]["flags"]["bundle"] == f"{TINY}@{commit}" == name
    cached = bundle_folder(name)
    assert [*map(models.hub_name, (cached, "a/b"))] == [name, "a/b"]
    # A folder that was imported has the same rows, which are taken over.
    import_checkpoint(checkpoint=hub.commits["acme/tiny"][commit], output=folder)
    assert open_stored(str(folder)).manifest["model_id"] == by_name["model_id"]
    flags |= {"corpus": corpus, "reuse": str(run)}
    again = precis.summarize(bundle=folder, output=tmp_path / "2", **flags)
    assert again["counts"]["reused"] == len(TEXTS)
    assert precis.digest(run=run) == precis.digest(run=tmp_path / "2")
    # Nothing but the request has the token.
    written = [*contents(run).values(), *contents(Path(cached)).values()]
    assert not any(TOKEN.encode() in content for content in written)
    with closed_port() as port:
        _use(monkeypatch, f"http://127.0.0.1:{port}", Path(cached).parents[4])
        with pytest.raises(UsageError, match="acme/new.* not .*; run `precis import"):
            local_bundle("hf://acme/new")
        row = precis.summarize_text(TEXTS[0], bundle=TINY, min_source_words=0)
        assert (row["model_id"], row["summary"] != "") == (by_name["model_id"], True)
        assert exit_code("import", TINY) == 0
        assert f"--bundle {name} --output" in capsys.readouterr().out
        assert exit_code(*doctor, name) == 0


def test_a_revision_is_imported_by_hand(hub: SmallHub, tmp_path):
    name = f"{TINY}@refs/pr/2"
    assert import_checkpoint(checkpoint=name, output=tmp_path / "b")
    provenance = open_stored(str(tmp_path / "b")).manifest["provenance"]
    commit = hub.refs["acme/tiny"]["refs/pr/2"]
    assert provenance["checkpoint"] == f"{TINY}@{commit}"
    assert provenance["flags"]["checkpoint"] == f"{TINY}@{commit}"
    with pytest.raises(UsageError, match="--output is empty; name the folder to write"):
        import_checkpoint(checkpoint=name, max_source_tokens=20)


@pytest.mark.slow
def test_imports_that_are_killed_or_meet_leave_a_whole_bundle(hub: SmallHub):
    name = resolve_model(f"{TINY}@refs/pr/2")
    models.download(name)
    folder = bundle_folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-P", "-m", "precis", "import", name]
    for seconds in (2.0, 4.5):
        killed = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        if os.path.exists(folder):
            break
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert len({process.communicate()[0] for process in both}) == 1
    assert [process.returncode for process in both] == [0, 0]
    assert not precis.verify(folder=folder).findings
    left = {str(path) for path in Path(folder).parent.glob(f"{Path(folder).name}*")}
    assert left == {folder, f"{folder}.lock"}
