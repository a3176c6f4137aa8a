"""Recordings that come from stores."""

import json
import time

from conftest import SAMPLES, SECRET, Web, free_port

CHURN = SAMPLES / "gc-churn.nettrace"
EVENTS = SAMPLES / "events.nettrace"


def same_files(one, other):
    """Whether two datasets have the same tables, byte by byte, but for the path of the recording in `trace`."""
    names = {path.relative_to(one) for path in one.rglob("*.parquet")}
    assert names == {path.relative_to(other) for path in other.rglob("*.parquet")} and len(names) > 50
    for name in names - {path for path in names if path.parts[0].startswith("trace")}:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_an_object_gives_the_tables_of_the_file(s3, files, bucket, tmp_path):
    bucket.put("a b/gc-churn.nettrace", CHURN)
    s3("convert", f"{bucket.address}/a b/gc-churn.nettrace", "-o", tmp_path / "stored")
    files("convert", CHURN, "-o", tmp_path / "local")
    same_files(tmp_path / "stored", tmp_path / "local")


def test_a_folder_and_a_pattern_stand_for_what_is_below(s3, bucket, tmp_path):
    bucket.put("night/1/gc-churn.nettrace", CHURN)
    bucket.put("night/2/events.nettrace", EVENTS)
    bucket.put("night/2/without-extension", (SAMPLES / "clr.etl").read_bytes())
    bucket.put("night/2/notes.txt", b"nothing")
    bucket.put("night/2/.hidden.nettrace", b"nothing")
    bucket.put("nightly/other.nettrace", b"nothing")
    ran = s3("convert", f"{bucket.address}/night", "-o", tmp_path / "a", "--jobs", "3", "--json", code=2)
    assert ran.outcomes() == {name: "converted" for name in ("gc-churn.nettrace", "events.nettrace", "without-extension")}
    ran = s3("convert", f"{bucket.address}/**/*.nettrace", "-o", tmp_path / "b", "--json", code=2)
    assert ran.outcomes()["other.nettrace"] == "failed" and len(ran.outcomes()) == 3
    ran = s3("convert", f"{bucket.address}/none/", "-o", tmp_path / "c", code=1)
    assert "there is no recording at this address or below" in ran.err


def test_many_objects_are_listed_over_all_pages(s3, bucket, tmp_path):
    from moto.s3.models import s3_backends

    # Not over the network, for the time that it takes.
    backend = next(iter(s3_backends.values()))["aws"]
    for number in range(1100):
        backend.put_object(bucket.name, f"t/{number:04}.txt.parquet", b"x")
    bucket.put("t/z.nettrace", EVENTS)
    ran = s3("convert", f"{bucket.address}/t/", "-o", tmp_path / "a", "--json", code=2)
    assert ran.outcomes() == {"z.nettrace": "converted"}


def test_an_archive_of_several_and_a_packed_recording(s3, bucket, tmp_path):
    import gzip
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(CHURN, "one.nettrace")
        archive.write(EVENTS, "two.nettrace")
    bucket.put("t/all.zip", packed.getvalue())
    bucket.put("t/heap.nettrace.gz", gzip.compress((SAMPLES / "heap.nettrace").read_bytes()))
    ran = s3("convert", f"{bucket.address}/t/all.zip", f"{bucket.address}/t/heap.nettrace.gz", "-o", tmp_path / "a", "--json", code=2)
    assert ran.outcomes() == {name: "converted" for name in ("one.nettrace", "two.nettrace", "heap.nettrace.gz")}
    paths = {line["path"] for line in ran.lines() if "path" in line}
    assert f"{bucket.address}/t/all.zip/two.nettrace" in paths


def test_what_fails_costs_itself_only(s3, bucket, web, tmp_path):
    bucket.put("t/gc-churn.nettrace", CHURN)
    bucket.put("t/broken.nettrace", b"nothing that anybody knows")
    given = [f"{bucket.address}/t/", f"{bucket.address}/gone.nettrace", "s3://no-such-bucket/night/"]
    given += [f"{web}/refused/r.nettrace", f"{web}/none.nettrace", f"{web}/folder/", f"http://127.0.0.1:{free_port()}/dead.nettrace"]
    given += [f"{web}/cut/events.nettrace", f"{web}/endless/heap.nettrace", f"{web}/events.nettrace"]
    ran = s3("convert", *given, "-o", tmp_path / "a", "--json", code=2)
    why = {line["path"]: line["error"] for line in ran.lines() if line["outcome"] == "failed"}
    assert len(why) == 9, why
    for end, expected in {
        "broken.nettrace": "no recording that tracequet knows",
        "gone.nettrace": "is not there: NoSuchKey",
        "night/": "cannot be listed: the store answers with 404: NoSuchBucket",
        "refused/r.nettrace": "the store refuses it (403)",
        "none.nettrace": "is not there",
        "folder/": "cannot be listed",
        "dead.nettrace": "cannot be reached",
        "cut/events.nettrace": "the download broke off: ",
        "endless/heap.nettrace": "has 1152921504606846976 bytes",
    }.items():
        reported = [error for path, error in why.items() if path.endswith(end)]
        assert reported and all(expected in error for error in reported), (end, why)
    converted = [line["path"] for line in ran.lines() if line["outcome"] == "converted"]
    assert converted == [f"{bucket.address}/t/gc-churn.nettrace", f"{web}/events.nettrace"]


def test_a_download_that_breaks_off_once_goes_on(files, web, tmp_path):
    files("convert", f"{web}/once/gc-churn.nettrace", "-o", tmp_path / "a")
    files("convert", CHURN, "-o", tmp_path / "b")
    same_files(tmp_path / "a", tmp_path / "b")
    files("convert", f"{web}/busy/gc-churn.nettrace", "-o", tmp_path / "c")


def test_a_signature_is_sent_and_not_told(files, web, tmp_path):
    address = f"{web}/signed/gc-churn.nettrace"
    ran = files("convert", f"{address}?sig={SECRET}", "-o", tmp_path / "a", "--json")
    assert json.loads(ran.out)["inputs"][0]["path"] == address
    # Neither in any file.
    for path in (tmp_path / "a").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path
    ran = files("convert", f"{address}?sig=wrong", "-o", tmp_path / "b", code=1)
    assert "(401)" in ran.err and "sig=" not in ran.err


def test_a_server_with_tls_is_known_by_its_certificate(files, secure_web, tmp_path):
    address, certificate = secure_web
    given = ["convert", f"{address}/gc-churn.nettrace", "-o", tmp_path / "a"]
    files(*given, SSL_CERT_FILE=str(certificate))
    ran = files("convert", f"{address}/gc-churn.nettrace", "-o", tmp_path / "b", code=1)
    assert "cannot be reached: " in ran.err and "certificate" in ran.err.lower()


def test_a_list_names_one_recording_a_line(s3, bucket, tmp_path):
    bucket.put("t/events.nettrace", EVENTS)
    listed = tmp_path / "list"
    listed.write_text(f"{bucket.address}/t/events.nettrace\n{bucket.address}/t/\n")
    ran = s3("convert", "--files-from", listed, "-o", tmp_path / "a", "--json", code=2)
    assert ran.outcomes() == {"events.nettrace": "converted", "": "failed"}
    assert "expected the address of one recording" in ran.err


def test_credentials_in_an_address_are_refused(files, tmp_path):
    ran = files("convert", f"https://user:{SECRET}@host/a.nettrace", "-o", tmp_path / "a", code=1)
    assert "credentials in an address are not used" in ran.err


def test_a_store_that_refuses_is_told_in_a_sentence(s3, bucket, tmp_path):
    dead = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    ran = s3("convert", f"{bucket.address}/t/", "-o", tmp_path / "a", code=1, AWS_ENDPOINT_URL=dead)
    assert "the objects below cannot be listed: cannot be reached" in ran.err and time.monotonic() - began < 60
    assert not (tmp_path / "a").exists()


def test_what_is_unchanged_is_not_fetched_again(files, web, tmp_path):
    given = [f"{web}/gc-churn.nettrace", f"{web}/heap.nettrace", "-o", tmp_path / "lake", "--append", "--json"]
    assert set(files("convert", *given).outcomes().values()) == {"converted"}
    sent = []
    answer = Web.answer
    Web.answer = lambda self, code, body, **more: (sent.append(code), answer(self, code, body, **more))
    try:
        assert set(files("convert", *given).outcomes().values()) == {"skipped"}
    finally:
        Web.answer = answer
    assert sent == [304, 304], "not the recordings themselves"


def test_other_commands_take_an_address(s3, bucket):
    bucket.put("t/gc-churn.nettrace", CHURN)
    address = f"{bucket.address}/t/gc-churn.nettrace"
    assert address in s3("inspect", address).out
    assert "gc.pause" in s3("stats", address).out


def test_an_interrupt_leaves_no_copies(s3, bucket, tmp_path, temporary):
    import signal

    for number in range(15):
        bucket.put(f"t/{number}.nettrace", CHURN.read_bytes() + bytes([number]))
    running = s3.start("convert", f"{bucket.address}/t/", "-o", tmp_path / "lake", "--append")
    for _ in range(1000):
        if list(temporary.iterdir()) or running.poll() is not None:
            break
        time.sleep(0.01)
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130 and not list(temporary.iterdir())
    # Goes on where it was.
    ran = s3("convert", f"{bucket.address}/t/", "-o", tmp_path / "lake", "--append", "--json", "--jobs", "2")
    assert set(ran.outcomes().values()) <= {"converted", "skipped"} and len(ran.outcomes()) == 15


def test_no_place_for_copies_is_said(s3, bucket, tmp_path):
    bucket.put("t/gc-churn.nettrace", CHURN)
    given = ["convert", f"{bucket.address}/t/gc-churn.nettrace", "-o", tmp_path / "a"]
    ran = s3(*given, code=1, TMPDIR=str(tmp_path / "none"))
    assert "temporary" in ran.err
