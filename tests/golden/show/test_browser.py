"""The html report in a real browser: no errors, the verdicts and pictures are there, the switches work."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import aclnn
from aclnn.golden.result import DumpComparison
from aclnn.golden.show import page
from tests.golden.faults import FAULTS
from tests.golden.large_dump import write as write_large

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason="no chromium here (Debian: apt install chromium)"),
]

PROBE = """
<script>
const seen = id => { const box = document.getElementById(id).getBoundingClientRect(); return box.width > 0; };
const shown = selector => [...document.querySelectorAll(selector)].filter(e => e.getClientRects().length).length;
const colour = () => getComputedStyle(document.body).backgroundColor;
const facts = {lang: document.documentElement.lang, en: shown(".en"), zh: shown(".zh"), light: colour(),
  verdict: seen("verdict"), sound: seen("sound"), histogram: shown("svg.histogram"), strips: shown("svg.strips"),
  heatmap: shown("svg.heatmap"), cells: shown("svg.heatmap rect"), hint: shown(".hint")};
document.getElementById("lang").click();
facts.zhAfter = shown(".zh"); facts.enAfter = shown(".en"); facts.langAfter = document.documentElement.lang;
document.getElementById("theme").click();
facts.dark = colour();
document.title = JSON.stringify(facts);
</script></body>"""


def browse(path: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
    ]
    command += [f"--user-data-dir={folder / 'profile'}", *options, path.as_uri()]
    environment = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=environment)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    run, wrong, _ = FAULTS["conv_hf32"]()
    (path,) = run.compare(folder, **wrong).save(folder / "report.html")
    return path


def test_page_in_a_browser(report: Path, tmp_path: Path) -> None:
    probed = tmp_path / "probed.html"
    probed.write_text(report.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    done = browse(probed, tmp_path, "--virtual-time-budget=3000", "--dump-dom")
    assert "CONSOLE" not in done.stderr, done.stderr
    title = done.stdout.split("<title>")[1].split("</title>")[0]
    facts = json.loads(title.replace("&amp;", "&").replace("&lt;", "<"))
    assert facts["verdict"]
    assert facts["sound"]
    assert (facts["lang"], facts["langAfter"]) == ("en", "zh")
    assert facts["en"] > 20
    assert facts["zh"] == 0
    assert facts["enAfter"] == 0
    assert facts["zhAfter"] == facts["en"]
    assert facts["histogram"] >= 2
    assert facts["strips"] >= 2
    assert facts["heatmap"] == 2
    assert facts["cells"] > 20
    assert facts["hint"] == 2
    assert facts["light"] != facts["dark"]


def test_screenshot_is_not_empty(report: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    browse(report, tmp_path, "--virtual-time-budget=3000", f"--screenshot={shot}", "--window-size=1200,1600")
    assert shot.stat().st_size > 30_000


SEARCHED = """
<script>
const calls = [...document.querySelectorAll("table.calls tbody tr")];
const seen = () => calls.filter((row) => row.getClientRects().length).length, every = seen();
search.value = "58.functional.CONV2D.3."; search.dispatchEvent(new Event("input"));
const found = seen();
search.value = ""; state.value = "fail"; state.dispatchEvent(new Event("change"));
document.title = JSON.stringify({every, found, wrong: seen()});
</script></body>"""


def test_two_thousand_calls_open_in_three_seconds_and_can_be_searched(tmp_path: Path) -> None:
    """Seconds of the processor: a browser in one process, less what an empty page costs it."""
    found = aclnn.compare(write_large(tmp_path / "d", 20, 16, wrong=1))
    assert isinstance(found, DumpComparison)
    many = [replace(r, case=f"{n}.{r.case}", order=r.order + 100 * n) for n in range(100) for r in found.reports]
    kept = [r for r in many if r.status == "pass" or r.order < 300]
    full, empty = tmp_path / "full.html", tmp_path / "empty.html"
    text = page.render(DumpComparison(found.standard, kept, "d"))
    full.write_text(text.replace("</body>", SEARCHED), encoding="utf-8")
    empty.write_text("<!doctype html><title>nothing</title>", encoding="utf-8")
    (nothing, _), (opened, done) = (_processor_seconds(path, tmp_path) for path in (empty, full))
    print(f"opened in {opened - nothing:.2f} s of the processor")
    assert "CONSOLE" not in done.stderr, done.stderr
    facts = json.loads(done.stdout.split("<title>")[1].split("</title>")[0])
    assert (facts["every"], facts["found"], facts["wrong"]) == (len({r.case for r in kept}), 2, 3)
    assert facts["every"] > 1900
    assert opened - nothing < 3


def _processor_seconds(path: Path, folder: Path) -> tuple[float, subprocess.CompletedProcess[str]]:
    def used() -> float:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    before = used()
    done = browse(path, folder, "--single-process", "--dump-dom")
    return used() - before, done
