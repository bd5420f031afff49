"""Search for Chinese words and for codes, which Sphinx alone does not find.

Chinese has no blanks between words: every run of up to four characters is a word here, so that no dictionary is needed.
The search in the browser passes over numbers; so 161002 is kept, and looked for, as code161002, and shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.search import SearchLanguage
from sphinx.search.en import SearchEnglish

_LONGEST = 4
_RUN = re.compile(r"[\u4e00-\u9fff]+|[A-Za-z0-9_]+")
_IN_THE_BROWSER = r"""
var splitQuery = function (query) {
  return (query.match(/[\u4e00-\u9fff]+|[A-Za-z0-9_]+/g) || []).flatMap(function (run) {
    if (/^\d+$/.test(run)) return ["code" + run];
    if (/[A-Za-z0-9_]/.test(run) || [1, 2, 3, 4].includes(run.length)) return [run];
    return run.match(/.{1,2}/g);
  });
};
if (typeof Search !== "undefined") {
  const shown = (words) => new Set([...words].map((word) => word.replace(/^code(?=\d+$)/, "")));
  const [summary, parse] = [Search.makeSearchSummary, Search._parseQuery];
  Search.makeSearchSummary = (page, words, anchor) => summary(page, shown(words), anchor);
  Search._parseQuery = (query) => {
    const [asked, words, excluded, highlighted, objects] = parse(query);
    return [asked, words, excluded, shown(highlighted), objects];
  };
}
"""


def words(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        if run.isdigit():
            yield f"code{run}"
        elif run.isascii():
            yield run
        else:
            yield from (run[i : i + n] for n in range(1, _LONGEST + 1) for i in range(len(run) - n + 1))


class _Splits:
    js_splitter_code = _IN_THE_BROWSER

    def split(self, input: str) -> list[str]:
        return list(words(input))


class English(_Splits, SearchEnglish):
    """With codes."""


class Chinese(_Splits, SearchLanguage):
    """With words of Chinese."""

    lang = "zh"
    language_name = "Chinese"

    def stem(self, word: str) -> str:
        return word.lower()


def setup(app: Sphinx) -> dict[str, Any]:
    for language in (English, Chinese):
        app.add_search_language(language)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
