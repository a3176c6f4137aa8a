"""Datasets that go to stores."""

import json
import shutil
import signal
import struct
import time

from conftest import SAMPLES, free_port

CHURN = SAMPLES / "gc-churn.nettrace"
# Few tables, where it is a matter of how many recordings there are.
FEW = ["--append", "--tables", "gc,gc_pause"]
GIVEN = [SAMPLES / name for name in ("gc-churn.nettrace", "heap.nettrace", "clr.etl")]


def tables(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def stored(bucket, prefix):
    """The tables of a dataset in a store."""
    return {
        key.removeprefix(prefix + "/"): bucket.get(key) for key in bucket.keys(prefix + "/") if key.endswith(".parquet")
    }


def traces(bucket, prefix):
    """The recordings that the summary has, and those that have an entry."""
    summed = json.loads(bucket.get(f"{prefix}/manifest.json"))
    keys = [key.rsplit("/", 1)[-1].removesuffix(".json") for key in bucket.keys(f"{prefix}/manifest/")]
    return sorted(found["trace_id"] for found in summed["inputs"] + summed["failed"]), sorted(keys)


def test_a_dataset_in_a_store_is_that_of_a_directory(s3, bucket, tmp_path):
    s3("convert", *GIVEN, "-o", tmp_path / "lake", "--append")
    for prefix, more in (("grown", ["--append", "--jobs", "2"]), ("whole", [])):
        s3("convert", *GIVEN, "-o", f"{bucket.address}/{prefix}", *more)
        assert stored(bucket, prefix) == tables(tmp_path / "lake")
        summed, keys = traces(bucket, prefix)
        assert summed == keys and len(keys) == 3
        assert bucket.get(f"{prefix}/views.sql") == (tmp_path / "lake/views.sql").read_bytes()
    s3("convert", CHURN, "-o", f"{bucket.address}/one")
    s3("convert", CHURN, "-o", tmp_path / "one")
    assert stored(bucket, "one") == tables(tmp_path / "one")


def test_what_is_there_is_skipped_and_the_rest_added(s3, bucket):
    lake = f"{bucket.address}/lake"
    s3("convert", GIVEN[0], "-o", lake, "--append", "--label", "branch=main")
    ran = s3("convert", *GIVEN, "-o", lake, "--append", "--json")
    assert ran.outcomes() == {"gc-churn.nettrace": "skipped", "heap.nettrace": "converted", "clr.etl": "converted"}
    assert ran.lines()[-1]["outcome"] == "summary"
    assert traces(bucket, "lake")[0] == traces(bucket, "lake")[1]
    listed = s3("dataset", "list", lake).out
    assert "branch=main" in listed and listed.count("\n") == 4
    ran = s3("convert", CHURN, "-o", lake, code=1)
    assert "exists already; add to it with --append" in ran.err
    ran = s3("convert", CHURN, "-o", lake, "--overwrite", code=1)
    assert "cannot be replaced in one step" in ran.err
    ran = s3("convert", CHURN, "-o", lake, "--append", "--format", "arrow", code=1)
    assert f"{lake}: its tables are parquet files" in ran.err


def test_a_failure_is_a_row_that_goes_when_it_is_mended(s3, bucket, tmp_path):
    lake = f"{bucket.address}/lake"
    broken = tmp_path / "gc-churn.nettrace"
    broken.write_bytes(b"not yet")
    ran = s3("convert", broken, GIVEN[1], "-o", lake, "--append", "--json", code=2)
    assert ran.outcomes() == {"gc-churn.nettrace": "failed", "heap.nettrace": "converted"}
    failed = [key for key in traces(bucket, "lake")[1] if key.startswith("gc-churn")]
    shutil.copy(CHURN, broken)
    s3("convert", broken, "-o", lake, "--append")
    summed, keys = traces(bucket, "lake")
    assert summed == keys and len(keys) == 2 and failed[0] not in keys
    assert not [key for key in bucket.keys("lake/") if failed[0] in key]


def test_a_run_that_stops_sums_up_what_came(s3, bucket, tmp_path):
    broken = tmp_path / "z.nettrace"
    broken.write_bytes(b"nothing that anybody knows")
    lake = f"{bucket.address}/lake"
    ran = s3("convert", GIVEN[0], broken, "-o", lake, *FEW, "--fail-fast", code=1)
    assert "no recording that tracequet knows" in ran.err
    summed, keys = traces(bucket, "lake")
    assert summed == keys and len(keys) == 1


def test_lists_verifies_and_removes(s3, bucket):
    lake = f"{bucket.address}/lake"
    s3("convert", *GIVEN, "-o", lake, "--append")
    assert "0 wrong" in s3("dataset", "verify", lake).out
    assert "gc.pause.p99" in s3("stats", lake).out
    assert "System.String" in s3("heap", lake, "--trace", "heap").out
    key = next(key for key in traces(bucket, "lake")[1] if key.startswith("clr"))
    bucket.delete(f"lake/gc/trace={key}/part-0.parquet")
    bucket.put("lake/gc/trace=stray/part-0.parquet", b"what a killed run left")
    file = next(key for key in bucket.keys("lake/gc_pause/") if "trace=heap" in key)
    bucket.put(file, b"PAR1 and nothing")
    ran = s3("dataset", "verify", lake, code=2)
    assert f"{lake}/gc/trace={key}/part-0.parquet: is not there" in ran.out
    assert f"{lake}/gc/trace=stray/part-0.parquet: belongs to no recording" in ran.out
    assert "3 wrong" in ran.out
    s3("dataset", "remove", lake, key)
    assert not [found for found in bucket.keys("lake/") if key in found]
    assert key not in traces(bucket, "lake")[0]
    assert "there is no recording" in s3("dataset", "remove", lake, key, code=1).err
    assert "a manifest.json below" in s3("dataset", "list", f"{bucket.address}/none", code=1).err


def test_a_dataset_is_compacted_and_its_recordings_are_labelled_skipped_and_removed(s3, bucket):
    lake = f"{bucket.address}/lake"
    s3("convert", *GIVEN, "-o", lake, "--append", "--label", "branch=main")
    keys, before = traces(bucket, "lake")[0], s3("stats", lake).out
    own = lambda: [key for key in bucket.keys("lake/") if any(f"trace={name}/" in key for name in keys)]
    assert len(own()) > 100
    # Objects cannot be renamed: the old ones go at once, since a glob would find their rows twice.
    assert "3 recordings compacted" in s3("dataset", "compact", lake, "--grace", "1h").out
    assert not own() and len(bucket.keys("lake/manifest/packed/")) == 1
    assert s3("stats", lake).out == before and "0 wrong" in s3("dataset", "verify", lake).out
    s3("dataset", "label", lake, "--where", "branch=main", "--set", "branch=next")
    listed = s3("dataset", "list", lake).out
    assert listed.count("branch=next") == 3 and "branch=main" not in listed
    assert set(s3("convert", *GIVEN, "-o", lake, "--append", "--json").outcomes().values()) == {"skipped"}
    s3("dataset", "remove", lake, keys[0])
    listed = s3("dataset", "list", lake).out
    assert keys[0] not in listed and keys[1] in listed and "0 wrong" in s3("dataset", "verify", lake).out


def test_small_recordings_come_as_a_pack(s3, bucket):
    plain, lake, whole = (f"{bucket.address}/{name}" for name in ("plain", "lake", "whole"))
    s3("convert", *GIVEN, "-o", plain, "--append")
    s3("convert", *GIVEN, "-o", lake, "--append", "--pack", "--jobs", "2")
    s3("convert", *GIVEN, "-o", whole, "--pack")
    for packed in ("lake", "whole"):
        at = f"{bucket.address}/{packed}"
        assert len(bucket.keys(f"{packed}/manifest/packed/")) == 1 and not bucket.keys(f"{packed}/.packs/")
        assert s3("dataset", "list", at).out == s3("dataset", "list", plain).out and "0 wrong" in s3("dataset", "verify", at).out
        assert s3("stats", at).out == s3("stats", plain).out
    assert set(s3("convert", *GIVEN, "-o", lake, "--append", "--pack", "--json").outcomes().values()) == {"skipped"}


def test_writers_at_once_lose_nothing(s3, bucket, tmp_path):
    lake = f"{bucket.address}/lake"
    given = []
    for number in range(6):
        path = tmp_path / f"run{number}.nettrace"
        # The same events, and other bytes behind the end of the recording.
        path.write_bytes((SAMPLES / "exit-early.nettrace").read_bytes() + bytes([number]))
        given.append(path)
    running = [s3.start("convert", path, given[0], "-o", lake, *FEW) for path in given]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, 2), err
    summed, keys = traces(bucket, "lake")
    assert summed == keys and len(keys) == 6
    assert "0 wrong" in s3("dataset", "verify", lake).out


def test_a_killed_run_goes_on(s3, bucket, tmp_path):
    given = []
    for number in range(8):
        path = tmp_path / f"run{number:02}.nettrace"
        path.write_bytes(CHURN.read_bytes() + bytes([number]))
        given.append(path)
    lake = f"{bucket.address}/lake"
    running = s3.start("convert", *given, "-o", lake, *FEW)
    while len(bucket.keys("lake/manifest/")) < 2:
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    for left in s3.temporary.iterdir():
        shutil.rmtree(left)
    done = len(bucket.keys("lake/manifest/"))
    ran = s3("convert", *given, "-o", lake, *FEW, "--json")
    assert list(ran.outcomes().values()).count("skipped") == done
    s3("convert", *given, "-o", f"{bucket.address}/undisturbed", *FEW)
    assert stored(bucket, "lake") == stored(bucket, "undisturbed")
    assert traces(bucket, "lake") == traces(bucket, "undisturbed")


def longer(recording, times):
    """A recording with its blocks of events repeated."""
    out = bytearray()
    first = recording.index(b"EventBlock") - 15
    out += recording[:first]
    objects, at = [], first
    while recording[at] == 5:
        name = struct.unpack_from("<i", recording, at + 11)[0]
        begin = at + 16 + name
        size = struct.unpack_from("<i", recording, begin)[0]
        body = (begin + 4 + 3) // 4 * 4
        objects.append((recording[at:begin], recording[body : body + size]))
        at = body + size + 1
    again = [block for block in objects if b"EventBlock" in block[0]]
    for head, body in objects + again * times:
        out += head + struct.pack("<i", len(body))
        out += b"\0" * (-len(out) % 4) + body + b"\6"
    return bytes(out + recording[at:])


def test_a_large_file_goes_in_pieces(s3, bucket, tmp_path):
    large = tmp_path / "large.nettrace"
    large.write_bytes(longer(CHURN.read_bytes(), 60))
    how = ["--tables", "gc_surviving_range", "--format", "arrow", "--compression", "none"]
    s3("convert", large, "-o", f"{bucket.address}/large", *how, code=2)
    s3("convert", large, "-o", tmp_path / "local", *how, code=2)
    local = (tmp_path / "local/gc_surviving_range.arrow").read_bytes()
    assert len(local) > 8 << 20 and bucket.get("large/gc_surviving_range.arrow") == local
    # Its tag says of how many pieces it is made.
    tag = bucket.client.head_object(Bucket=bucket.name, Key="large/gc_surviving_range.arrow")["ETag"]
    assert int(tag.strip('"').split("-")[1]) > 1
    # And down again.
    assert "0 wrong" in s3("dataset", "verify", f"{bucket.address}/large").out


def test_something_else_is_not_written_over(s3, bucket):
    bucket.put("cats/cat.jpg", b"cat")
    for more in ([], ["--append"]):
        ran = s3("convert", CHURN, "-o", f"{bucket.address}/cats", *more, code=1)
        assert "cats" in ran.err
    assert bucket.keys() == ["cats/cat.jpg"]
    # A folder whose name begins alike is another one.
    s3("convert", CHURN, "-o", f"{bucket.address}/cat")


def test_a_store_that_goes_away_leaves_no_dataset(s3, bucket):
    dead = f"http://127.0.0.1:{free_port()}"
    for more in ([], ["--append"]):
        ran = s3("convert", CHURN, "-o", f"{bucket.address}/lake", *more, code=1, AWS_ENDPOINT_URL=dead)
        assert f"{bucket.address}/lake: cannot be reached" in ran.err
    assert bucket.keys() == []


def test_conditions_can_be_switched_off_and_that_is_told(s3, bucket):
    ran = s3("convert", CHURN, "-o", f"{bucket.address}/lake", "--append", AWS_CONDITIONAL_PUT="disabled")
    assert "let one run at a time write to it" in ran.err
    assert traces(bucket, "lake")[0] == traces(bucket, "lake")[1]


def test_a_web_server_takes_no_dataset(files, web):
    assert "takes no dataset" in files("convert", CHURN, "-o", f"{web}/lake", code=1).err


def azure(azurite):
    # The account and the key that every emulator has; they are no secret.
    return {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": azurite}


def test_azure(files, azurite, tmp_path):
    import base64
    import datetime
    import hashlib
    import hmac
    import urllib.request

    account = "devstoreaccount1"
    key = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n/{account}/{account}/traces\nrestype:container"
    signature = base64.b64encode(hmac.new(key, signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey {account}:{signature}"}
    made = urllib.request.Request(f"{azurite}/{account}/traces?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(made).read()

    environment = azure(azurite)
    files("convert", *GIVEN, "-o", "az://traces/lake", "--append", "--jobs", "2", **environment)
    ran = files("convert", *GIVEN, "-o", "az://traces/lake", "--append", "--json", **environment)
    assert set(ran.outcomes().values()) == {"skipped"}
    assert "0 wrong" in files("dataset", "verify", "az://traces/lake", **environment).out
    running = [files.start("convert", given, "-o", "az://traces/many", *FEW, **environment) for given in GIVEN]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert "0 wrong" in files("dataset", "verify", "az://traces/many", **environment).out
    assert files("dataset", "list", "az://traces/many", **environment).out.count("\n") == 4
    ran = files("convert", "az://traces/none.nettrace", "-o", tmp_path / "a", code=1, **environment)
    assert "is not there" in ran.err
    ran = files("convert", "az://none/", "-o", tmp_path / "a", code=1, **environment)
    assert "cannot be listed" in ran.err
