"""Tests of what `precis doctor` says of object stores and their credentials."""

import os
import threading
import time

import pytest
from support.doctor_runs import request_of, serve_json, the_problem
from support.processes import closed_port

from precis.pipelines.doctor import object_stores
from precis.pipelines.doctor.findings import checked
from precis.pipelines.doctor.object_stores import (
    check_object_stores,
    within_limit,
)

FLAGS = {"corpus": "jsonl:gs://in/news/*.jsonl", "output": "gs://out/run"}


@pytest.fixture(autouse=True)
def nobody(tmp_path, monkeypatch):
    """A user without credentials, on a machine that is not in a cloud."""
    for name in list(os.environ):
        if name.startswith(("GOOGLE_", "AWS_", "STORAGE_", "CLOUDSDK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def findings(**flags):
    return list(check_object_stores(request_of("summarize", **{**FLAGS, **flags})))


def test_local_paths_need_no_credentials():
    assert findings(corpus="sample:20", output="out") == []


def test_missing_credentials_are_a_problem():
    problem = the_problem(findings())
    assert problem.subject == "credentials"
    assert problem.found == "there are no credentials for gs://"
    assert "gcloud auth application-default login" in problem.advice
    assert "GOOGLE_APPLICATION_CREDENTIALS" in problem.advice


def test_a_key_file_that_is_not_there_is_a_problem(monkeypatch, tmp_path):
    path = str(tmp_path / "key.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
    assert path in the_problem(findings()).found


def test_a_bucket_that_does_not_answer_is_a_problem(monkeypatch):
    request = request_of("summarize", **{**FLAGS, "corpus": "sample:20"})
    with closed_port() as port:
        address = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        note, problem = checked("bucket", check_object_stores(request))
    assert note.level == "note" and address in note.found
    assert "cannot be reached (Connection refused)" in problem.found
    assert problem.advice.startswith("check the network, or the variables STORAGE_")


def test_buckets_that_answer_are_reported(monkeypatch):
    pages = {f"/storage/v1/b/{name}": {"name": name} for name in ("in", "out")}
    with serve_json(pages) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{address}")
        note, *buckets = findings()
    assert note.found == f"gs://: none, as STORAGE_EMULATOR_HOST is http://{address}"
    found = [each.found for each in buckets]
    assert found == ["gs://in answers", "gs://out answers"]


def test_a_bucket_that_is_not_there_is_a_problem(monkeypatch):
    with serve_json({"/storage/v1/b/in": {"name": "in"}}) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{address}")
        problem = the_problem(findings())
    assert problem.found == "there is no bucket gs://out"
    assert problem.advice == "make it, or check the name"


def test_a_bucket_that_answers_too_late_is_a_problem(monkeypatch):
    monkeypatch.setattr(object_stores, "_SECONDS", 0.01)
    monkeypatch.setattr(object_stores, "check_bucket", lambda _: time.sleep(0.2))
    problem = object_stores._ask("gs://in")
    assert problem.found == "gs://in does not answer: no answer within 0.01 seconds"


@pytest.mark.parametrize(
    ("path", "settings", "found"),
    [
        ("gs://in", {"gcs": {"token": "anon"}}, "gs://: fsspec's setting token"),
        ("s3://in", {"s3": {"anon": "true"}}, "s3://: fsspec's setting anon"),
    ],
)
def test_the_settings_of_public_buckets_stand_for_credentials(
    path, settings, found, monkeypatch
):
    """They come from FSSPEC_GCS_TOKEN=anon and FSSPEC_S3_ANON=true."""
    monkeypatch.setattr(object_stores, "check_bucket", lambda _: None)
    monkeypatch.setattr("fsspec.config.conf", settings)
    first, bucket = findings(corpus=f"jsonl:{path}/*.jsonl", output="out")
    assert first == ("ok", "credentials", found, "")
    assert bucket.found == f"{path} answers"


def test_a_call_that_hangs_is_left_alone():
    release = threading.Event()
    with pytest.raises(TimeoutError, match="no answer within 0.1 seconds"):
        within_limit(release.wait, seconds=0.1)
    release.set()


def test_a_call_within_the_limit_gives_its_result_or_its_error():
    assert within_limit(lambda: 7, seconds=5) == 7

    def fail():
        time.sleep(0.01)
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        within_limit(fail, seconds=5)
