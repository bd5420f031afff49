"""`make fuzz`: guided by coverage where atheris is installed, unguided otherwise."""

from __future__ import annotations

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


if __name__ == "__main__":
    main(int(sys.argv[1]))
