"""The html report in a real browser: no errors, the verdicts and pictures are there, the switches work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.golden.faults import FAULTS

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
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=3000", *options, path.as_uri()]
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
    done = browse(probed, tmp_path, "--dump-dom")
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
    browse(report, tmp_path, f"--screenshot={shot}", "--window-size=1200,1600")
    assert shot.stat().st_size > 30_000
