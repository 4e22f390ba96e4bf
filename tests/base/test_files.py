"""Files are written completely or not at all, synced to the disk, and a killed process leaves no temporary file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from calibrary.base.files import write_atomically


def test_a_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real, **k: (done.append(name), real(*a, **k))[1])
    write_atomically(tmp_path / "state", b"whole")
    assert (tmp_path / "state").read_bytes() == b"whole"
    assert done[0] == "fsync"


@pytest.mark.skipif(os.name != "posix", reason="this build lacks: signals of POSIX")
def test_the_temporary_file_of_a_killed_process_is_removed_by_the_next_one(tmp_path):
    code = f"""
import time
from calibrary.base.files import beside
with beside({str(tmp_path / "state")!r}) as temporary:
    temporary.write_bytes(b"half")
    print("ready", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        write_atomically(tmp_path / "other", b"x")  # the temporary file of a running process stays
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(signal.SIGKILL)
        process.wait()
    time.sleep(0.01)
    write_atomically(tmp_path / "state", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "state"]
