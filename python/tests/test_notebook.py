"""The notebooks of samples/notebooks run from their first cell to their last, and their plots have something in
them.
"""

import base64
import os
import pathlib
import re
import struct
import warnings
import zlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")
pytest.importorskip("ipykernel")

from conftest import SAMPLES

NOTEBOOKS = sorted((SAMPLES / "notebooks").glob("*.ipynb"))


def colours(png):
    """How many colours a picture of 8 bits a channel has."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, width = 8, b"", 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6)
            size = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    raw = zlib.decompress(data)
    # Filtered lines differ wherever the picture does; that is enough to tell a blank one.
    return len({raw[i : i + size] for i in range(1, len(raw) - size, 97)})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_plots_show_something(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are stored without output"
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    plots, tables = 0, 0
    folder = pathlib.Path(os.environ.get("TRACEQUET_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", output
            assert output.output_type != "stream" or output.name != "stderr", output.text
            data = output.get("data", {})
            if "image/png" in data:
                png = base64.b64decode(data["image/png"])
                (folder / f"{path.stem}-{plots}.png").write_bytes(png)
                assert len(png) > 5_000 and colours(png) > 20
                plots += 1
            tables += "text/html" in data
    assert plots >= 5 and tables >= 4


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_a_notebook_shows_how_far_a_reading_is():
    code = f"""
import tracequet
from tracequet import _html
_html._Line.AFTER = 0
trace = tracequet.open({str(SAMPLES / "gc-churn.nettrace")!r})
count = len(trace["gc_moved_range"].collect())
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    shown = []

    class Client(nbclient.NotebookClient):
        def output(self, outs, msg, display_id, cell_index):
            shown.append((msg["msg_type"], msg["content"].get("data", {}).get("text/plain")))
            return super().output(outs, msg, display_id, cell_index)

        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] == "update_display_data":
                shown.append((msg["msg_type"], msg["content"]["data"]["text/plain"]))
            return super().process_message(msg, cell, cell_index)

    Client(notebook, timeout=60).execute()
    assert shown[0][0] == "display_data" and re.fullmatch(r"gc_moved_range: .* of 257\.2 KB \(\d+ %\)", shown[0][1]), shown
    # The line goes when the table is there.
    assert shown[-1] == ("update_display_data", ""), shown
