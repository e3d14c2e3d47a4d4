"""Lets python-tuf's own client update itself from repositories that scripts/release/repository.mjs makes.

    PYTHONPATH=.toolchain/tuf python3 packages/proto/test/tuf_repository.py NODE

NODE is the program that runs the script. Nothing but this project's commands writes the repository.
"""

import os
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

from tuf.api.exceptions import DownloadHTTPError, ExpiredMetadataError, LengthOrHashMismatchError
from tuf.ngclient import FetcherInterface, Updater

SCRIPT = Path(__file__).parents[3] / "scripts" / "release" / "repository.mjs"


class Folder(FetcherInterface):
    def __init__(self, folder):
        self.folder = folder

    def _fetch(self, url):
        file = self.folder / url.removeprefix("https://repository/")
        if not file.exists():
            raise DownloadHTTPError("not there", 404)
        yield file.read_bytes()


class Lab:
    def __init__(self, folder):
        self.folder = folder
        self.repository = folder / "repository"
        self.keys = [word for role in ("targets", "snapshot", "timestamp") for word in (f"--{role}", f"{folder}/{role}.pem")]

    def run(self, *words, fails=False):
        done = subprocess.run(
            [sys.argv[1], str(SCRIPT), words[0], "--repository", str(self.repository), *self.keys, *words[1:]],
            capture_output=True, text=True)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def program(self, version, content=b""):
        file = self.folder / f"program-{version}"
        elf = b"\x7fELF".ljust(18, b"\0") + (62).to_bytes(2, "little")
        file.write_bytes(elf + f"bootfarm release mark: {version} x86_64\n".encode() + content)
        return file

    def update(self, state, root, now=None):
        """Returns the client after its update; `state` is what it keeps between updates."""
        for name in ("metadata", "targets"):
            (state / name).mkdir(parents=True, exist_ok=True)
        client = Updater(
            str(state / "metadata"), "https://repository/metadata/", str(state / "targets"), "https://repository/targets/",
            fetcher=Folder(self.repository), bootstrap=root)
        if now:
            client._trusted_set.reference_time = now
        client.refresh()
        return client

    def download(self, client, version):
        found = client.get_targetinfo(f"bootfarm-edge/{version}/x86_64/bootfarm-edge")
        return found and Path(client.download_target(found)).read_bytes()


def check(folder):
    lab = Lab(folder)
    roots = [word for number in (1, 2) for word in ("--root", f"{folder}/root-{number}.pem")]
    assert "no root" in lab.run("add", fails=True)
    lab.run("root", *roots, "--threshold", "2")
    first = (lab.repository / "metadata" / "1.root.json").read_bytes()
    assert (folder / "root-1.pem").stat().st_mode & 0o077 == 0
    lab.run("add", str(lab.program("0.2.0")))
    state = folder / "client"
    client = lab.update(state, first)
    assert lab.download(client, "0.2.0") == lab.program("0.2.0").read_bytes()
    assert lab.download(client, "0.3.0") is None

    # The next release, and one more program of a version that is out already.
    lab.run("add", str(lab.program("0.3.0")))
    assert "another program" in lab.run("add", str(lab.program("0.2.0", b"changed")), fails=True)
    client = lab.update(state, first)
    assert lab.download(client, "0.3.0") == lab.program("0.3.0").read_bytes()

    # Half of the root keys, and the online key of another role.
    half = ["--root", f"{folder}/root-1.pem"]
    former = [word.replace("--root", "--former-root") for word in roots]
    assert "2 of its keys" in lab.run("root", *half, "--former-root", f"{folder}/root-1.pem", fails=True)
    lab.keys[lab.keys.index(f"{folder}/targets.pem")] = f"{folder}/timestamp.pem"
    assert "targets needs signatures" in lab.run("add", fails=True)

    # A new root key and a new timestamp key: a client that has root 1 follows.
    lab.keys = [word.replace("/timestamp.pem", "/timestamp-2.pem") for word in lab.keys]
    lab.keys[1] = f"{folder}/targets.pem"
    lab.run("root", *roots, "--root", f"{folder}/root-3.pem", "--threshold", "2", *former)
    lab.run("add")
    assert lab.download(lab.update(state, first), "0.3.0") == lab.program("0.3.0").read_bytes()
    assert (state / "metadata" / "root.json").resolve().read_bytes() == (lab.repository / "metadata" / "2.root.json").read_bytes()

    # A week later the timestamp has expired.
    try:
        lab.update(folder / "late", first, datetime.now(timezone.utc) + timedelta(days=8))
        raise AssertionError("an expired timestamp was accepted")
    except ExpiredMetadataError:
        pass

    # A changed program is refused by its hash.
    [target] = (lab.repository / "targets" / "bootfarm-edge" / "0.3.0" / "x86_64").iterdir()
    target.write_bytes(target.read_bytes()[:-1] + b"!")
    try:
        lab.download(lab.update(folder / "new", first), "0.3.0")
        raise AssertionError("a changed program was accepted")
    except LengthOrHashMismatchError:
        pass


if __name__ == "__main__":
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        check(Path(name))
    print("python-tuf updates itself from repositories of scripts/release/repository.mjs")
