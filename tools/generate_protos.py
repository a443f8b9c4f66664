"""Generates the Python side of protos/semel: messages, stubs, types and the descriptor set.

The output is a function of the .proto files and the locked tools alone: every machine gets the same
bytes. `--check` generates into a temporary folder and compares, changing nothing.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import google.rpc
import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
OUTPUT = PROTOS / "src"
DESCRIPTORS = "semel/descriptors.binpb"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi", "*/**/__init__.py")


def main() -> int:
    """Generate, or with `--check` name every file that differs from its source."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; status 1 if stale")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        fresh = generate(Path(folder))
    stale = [path for path, content in fresh.items() if read(OUTPUT / path) != content]
    orphans = [path for path in generated_files(OUTPUT) if path not in fresh]
    if check:
        for path in sorted(stale + orphans):
            sys.stderr.write(f"{OUTPUT.relative_to(ROOT) / path}: not fresh, run `make protos`\n")
        return 1 if stale or orphans else 0
    for path in stale:
        (OUTPUT / path).parent.mkdir(parents=True, exist_ok=True)
        (OUTPUT / path).write_bytes(fresh[path])
    for path in orphans:
        (OUTPUT / path).unlink()
    return 0


def generate(folder: Path) -> dict[Path, bytes]:
    """Generate everything into an empty folder; returns contents by path below it."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.glob("semel/**/*.proto"))
    if not sources:
        return {}
    (folder / "semel").mkdir()
    run_protoc(
        sources,
        "--include_imports",
        f"--descriptor_set_out={folder / DESCRIPTORS}",
        f"--python_out={folder}",
        f"--mypy_out=quiet:{folder}",
    )
    # Stubs are for users of plain gRPC: our own servers and SDK go by the descriptors.
    run_protoc(
        files_with_services(folder / DESCRIPTORS, sources),
        f"--grpc_python_out={folder}",
        f"--mypy_grpc_out=quiet:{folder}",
    )
    write_package_docstrings(folder)
    paths = [*generated_files(folder), Path(DESCRIPTORS)]
    return {path: (folder / path).read_bytes() for path in paths}


def run_protoc(sources: Iterable[str], *options: str) -> None:
    """Run protoc over sources named from protos/, as they are imported."""
    tools = Path(sys.executable).parent
    includes = (
        PROTOS,
        Path(grpc_tools.__file__).parent / "_proto",
        Path(google.rpc.__path__[0]).parent.parent,
    )
    status: int = protoc.main(
        [
            "protoc",
            *(f"--proto_path={path}" for path in includes),
            f"--plugin=protoc-gen-mypy={tools / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={tools / 'protoc-gen-mypy_grpc'}",
            *options,
            *sources,
        ]
    )
    if status != 0:
        sys.exit(status)


def files_with_services(descriptors: Path, sources: Iterable[str]) -> list[str]:
    """Return those sources that declare a service."""
    files = FileDescriptorSet.FromString(descriptors.read_bytes()).file
    serving = {file.name for file in files if file.service}
    return [source for source in sources if source in serving]


def write_package_docstrings(folder: Path) -> None:
    """Make a package of every folder below semel/; semel/__init__.py itself is hand-written."""
    for package in sorted(path for path in (folder / "semel").rglob("*") if path.is_dir()):
        name = package.relative_to(folder)
        text = f'"""Generated from protos/{name.as_posix()}, where each message is explained."""\n'
        (package / "__init__.py").write_text(text)


def generated_files(folder: Path) -> list[Path]:
    """Return the paths, below a folder, of all generated code in it."""
    found = {path for pattern in GENERATED for path in (folder / "semel").rglob(pattern)}
    return sorted(path.relative_to(folder) for path in found)


def read(path: Path) -> bytes | None:
    """Return a file's content, or None if there is no such file."""
    return path.read_bytes() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
