"""Coverage-guided fuzzing of one target, or of all of them in turn, with Atheris.

    python tests/fuzz/run.py --seconds 600 sql pgoutput
    python tests/fuzz/run.py --seconds 60             # every target

Atheris is not among the packages of the project: `pip install atheris` first. An input that raises anything but a
declared error is kept in the working directory of the run, and the run ends with 1."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run targets, each in a process of its own: a fuzzer does not come back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="CPU time for each target")
    parser.add_argument("--corpus", type=Path, help="where inputs are kept from run to run")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if args.alone:
        fuzz(args.targets[0], args.seconds, args.corpus)
        return 0
    from targets import TARGETS

    corpus = args.corpus or Path(tempfile.mkdtemp(prefix="millstream-fuzz-"))
    failed = []
    for name in args.targets or TARGETS:
        command = [sys.executable, __file__, "--alone", "--seconds", str(args.seconds), "--corpus", str(corpus), name]
        print(f"== {name}", flush=True)
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    print(f"inputs are in {corpus}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def fuzz(name: str, seconds: int, corpus: Path) -> None:
    """Fuzz one target until its time is over."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["millstream"]):
        from targets import TARGETS
    target = TARGETS[name]
    inputs = corpus / name
    inputs.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (inputs / f"seed-{number}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=2048"]
    if target.words:
        words = corpus / f"{name}.words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
        options.append(f"-dict={words}")
    prefix = f"-artifact_prefix={corpus}/{name}-"
    atheris.Setup([sys.argv[0], *options, prefix, "-print_final_stats=1", str(inputs)], target.run)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    sys.exit(main())
