"""Servers that stores are tested against, on this machine: moto for S3, Azurite for Azure, and a plain HTTP server that
can be made to misbehave. `TRACEQUET` is the program, built with the feature `cloud` (.ci/cloud)."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"
PROGRAM = os.environ["TRACEQUET"]
# What .ci/cloud sets: the copy of Azurite that npm installed.
AZURITE = os.environ.get("AZURITE")
SECRET = "a-very-secret-key"


class Ran:
    """How the program ended, and what it said."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def lines(self):
        """The lines of `convert --json`."""
        return [json.loads(line) for line in self.out.splitlines()]

    def outcomes(self):
        """What became of each recording, by its name."""
        done = [line for line in self.lines() if line["outcome"] != "summary"]
        return {line["path"].rsplit("/", 1)[-1]: line["outcome"] for line in done}


class Program:
    """The program with the environment of a store."""

    def __init__(self, environment, temporary):
        self.temporary = temporary
        plain = {name: value for name, value in os.environ.items() if not re.match("AWS_|AZURE_|GOOGLE_|AZURITE_", name)}
        self.environment = {**plain, "TMPDIR": str(temporary), **environment}

    def start(self, *arguments, cwd=None, **environment):
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)],
            cwd=cwd,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )

    def __call__(self, *arguments, code=0, **environment):
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        ran = Ran(subprocess.CompletedProcess(arguments, process.returncode, out, err))
        assert SECRET not in out + err
        assert ran.code == code, f"{arguments}: {ran.code}\n{out}\n{err}"
        assert not list(self.temporary.iterdir()), "temporary files are left"
        return ran


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return listening.getsockname()[1]


@pytest.fixture
def temporary(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def moto():
    """The address of an S3 server."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class Bucket:
    """A bucket of S3, seen by a client that is not ours."""

    def __init__(self, endpoint, name):
        import boto3

        self.name, self.address = name, f"s3://{name}"
        self.client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="id",
            aws_secret_access_key=SECRET,
        )
        self.client.create_bucket(Bucket=name)

    def put(self, key, content):
        content = content.read_bytes() if isinstance(content, pathlib.Path) else content
        self.client.put_object(Bucket=self.name, Key=key, Body=content)

    def get(self, key):
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def delete(self, key):
        self.client.delete_object(Bucket=self.name, Key=key)

    def keys(self, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]


@pytest.fixture
def bucket(moto, request):
    """An empty bucket."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    # The end of it distinguishes the cases of a test.
    name = name[-50:].strip("-") + "-b"
    return Bucket(moto, name)


@pytest.fixture
def s3(moto, temporary):
    """The program, with credentials for moto."""
    environment = {
        "AWS_ENDPOINT_URL": moto,
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    return Program(environment, temporary)


@pytest.fixture
def files(temporary):
    """The program, without credentials."""
    return Program({}, temporary)


@pytest.fixture(scope="session")
def azurite(tmp_path_factory):
    """The address of Azurite's blobs."""
    if not AZURITE or shutil.which("node") is None:
        pytest.skip("AZURITE is not set, or there is no node: .ci/cloud has both")
    port = free_port()
    command = ["node", AZURITE, "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobHost", "127.0.0.1"]
    server = subprocess.Popen(
        [*command, "--blobPort", str(port)], cwd=tmp_path_factory.mktemp("azurite"), stdout=subprocess.DEVNULL
    )
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        assert server.poll() is None
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    server.terminate()
    server.wait()


class Web(http.server.BaseHTTPRequestHandler):
    """Files with ranges and tags. Names of faults in front of the path: `/cut/`, `/once/`, `/slow/`, `/refused/`,
    `/busy/`, `/endless/`."""

    protocol_version = "HTTP/1.1"
    seen = {}

    def log_message(self, *_):
        pass

    def do_PROPFIND(self):
        self.answer(405, b"")

    def answer(self, code, body, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = urllib.parse.urlparse(self.path)
        fault, _, name = path.path.strip("/").rpartition("/")
        name = urllib.parse.unquote(name)
        count = self.seen[self.path] = self.seen.get(self.path, 0) + 1
        if fault == "refused":
            return self.answer(403, f"no {SECRET}".encode())
        if fault == "busy" and count < 3:
            return self.answer(503, b"")
        if fault == "signed" and "sig=" + SECRET not in path.query:
            return self.answer(401, b"")
        file = SAMPLES / name
        if not file.is_file():
            return self.answer(404, b"")
        body, tag = file.read_bytes(), f'"{name}-1"'
        if self.headers.get("If-None-Match") == tag:
            return self.answer(304, b"", ETag=tag)
        start = 0
        asked = re.match(r"bytes=(\d+)-(\d+)?", self.headers.get("Range", ""))
        if asked:
            start, size = int(asked[1]), len(body)
            end = min(int(asked[2]) + 1 if asked[2] else size, size)
            more = {"Content_Range": f"bytes {start}-{end - 1}/{size}"}
            body = body[start:end]
        self.send_response(206 if asked else 200)
        for key, value in (more if asked else {}).items():
            self.send_header(key.replace("_", "-"), value)
        if fault != "cut":
            self.send_header("ETag", tag)
        self.send_header("Content-Length", str(1 << 60 if fault == "endless" else len(body)))
        self.end_headers()
        if fault == "cut" or fault == "once" and count == 1:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.wfile.write(body)


@contextlib.contextmanager
def serving(context=None):
    Web.seen = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture
def web():
    """The address of a plain web server."""
    with serving() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def secure_web(tmp_path):
    """The address of a web server with TLS, and the certificate by which it is known."""
    import datetime
    import ssl

    # moto brings it.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
    certificate = made.sign(key, hashes.SHA256())
    pem, secret = tmp_path / "certificate.pem", tmp_path / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    with serving(context) as port:
        yield f"https://localhost:{port}", pem
