"""`make fuzz`: first the C interface under sanitizers, then Python, guided by coverage where atheris is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings

PYTHON_SIDE = ["aclnn.base", "aclnn.contract", "aclnn.golden", "aclnn.ops", "aclnn.runtime"]  # numba compiles the rest


def main(seconds: int) -> None:
    warnings.simplefilter("ignore")
    try:
        import atheris
    except ImportError:
        from tests.hostile import fuzz

        fuzz.without_guidance(seconds, [p.read_bytes() for p in sorted(fuzz.CORPUS.iterdir())])
        return
    with atheris.instrument_imports(include=PYTHON_SIDE):
        from tests.hostile import fuzz
    for name in ("found", "queue"):
        (fuzz.FOLDER / name).mkdir()
    limits = [f"-max_total_time={seconds}", "-rss_limit_mb=4096", "-timeout=60", "-print_final_stats=1"]
    places = [f"-artifact_prefix={fuzz.FOLDER}/found/", str(fuzz.FOLDER / "queue"), str(fuzz.CORPUS)]
    atheris.Setup([sys.argv[0], *limits, *places], fuzz.one_input)
    atheris.Fuzz()


def fuzz_c(seconds: int) -> None:
    """In a process of its own: what it imports could not be instrumented any more."""
    if shutil.which("g++") is None:
        print("there is no g++: the C interface is not fuzzed")
        return
    subprocess.run([sys.executable, "-m", "tests.hostile.c_fuzz", str(seconds)], check=True)


if __name__ == "__main__":
    fuzz_c(int(sys.argv[1]) // 2)
    main(int(sys.argv[1]) - int(sys.argv[1]) // 2)
