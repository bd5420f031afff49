"""Sentences and tables as wide as a terminal: folded between words, stacked where there is no room, never cut."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

Cell = str | Text
Row = Sequence[Cell]

_GAPS = (2, 1)  # columns between two columns of a table: as it should be, and if it must be
_INDENT = 2  # of what stands below a heading
_SHORT, _SENTENCE = 12, 24  # columns that a folded cell gets at least: one of few words, and a sentence
_WIDE = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
_OPENING, _CLOSING = "（《【“‘", "，。、；：？！）》】”’…—,.;:?!)]}%"
# What a line is not broken inside of: a word, or one Chinese character, with its punctuation and the blanks after it.
_PIECE = re.compile(rf"[{_OPENING}]*(?:(?![{_OPENING}])[{_WIDE}]|[^\s{_WIDE}{_OPENING}]+)?[{re.escape(_CLOSING)}]*\s*")


def pieces(text: str) -> list[str]:
    """The text in parts between which a line may be broken.

    >>> pieces("一个word（即x1），two words")
    ['一', '个', 'word', '（即', 'x1），', 'two ', 'words']
    """
    return [piece for piece in _PIECE.findall(text) if piece]


def fold(text: Cell, width: int | None, hang: int = 0) -> list[Text]:
    """The lines of a text; those that go on are indented like their first one, and by `hang` more."""
    whole = text if isinstance(text, Text) else Text(text)
    return [part for line in whole.split("\n", allow_blank=True) for part in _folded(line, width, hang)] or [Text()]


def _folded(line: Text, width: int | None, hang: int) -> Iterator[Text]:
    lead = len(line.plain) - len(line.plain.lstrip())
    margin, breaks, used, at = lead + hang, [], lead, lead
    has_words = False
    for piece in pieces(line.plain.lstrip()):
        if has_words and width is not None and used + cell_len(piece.rstrip()) > width:
            breaks.append(at)
            used = margin
        has_words, used, at = True, used + cell_len(piece), at + len(piece)
    for i, part in enumerate(line.divide(breaks)):
        part.rstrip()
        yield Text(" " * margin) + part if i else part


def pairs(rows: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """Names to the left, what they mean to the right of them, or below where a name is too long."""
    longest = max(cell_len(name) for name, _ in rows)
    room = 2 * _INDENT + (longest if longest < width // 2 else width // 4)
    lines = []
    for name, meaning in rows:
        begun = Text(" " * _INDENT + name)
        if begun.cell_len + _INDENT > room:
            lines.append(begun)
            begun = Text()
        for part in fold(meaning, width - room):
            lines.append(begun + Text(" " * (room - begun.cell_len)) + part)
            begun = Text()
    return lines


def table(
    head: Sequence[str], rows: Sequence[Row], width: int | None = None, right: Collection[int] = ()
) -> list[Text]:
    """The lines of a table that fits into `width` columns; the columns in `right` hold numbers.

    If there is no room, cells of several words are folded; then the first column becomes headings; then every row is
    stacked, a name and a value at a time.
    """
    texts = [[c if isinstance(c, Text) else Text(c) for c in row] for row in rows]
    names = [Text(name, "bold") for name in head]
    for gap in _GAPS:
        widths = _widths(names, texts, width, gap)
        if widths:
            return [part for row in (names, *texts) for part in _side_by_side(row, widths, gap, right)]
        widths = _widths(names[1:], [row[1:] for row in texts], (width or 0) - _INDENT, gap)
        if widths:
            inner = [names[1:], *(row[1:] for row in texts)]
            blocks = (list(_side_by_side(row, widths, gap, {i - 1 for i in right})) for row in inner)
            return list(_under_headings([names[0], *(row[0] for row in texts)], blocks))
    stacks = (list(_stacked(head, row, width or 0)) for row in texts)
    return list(_under_headings([row[0] for row in texts], stacks))


def _widths(names: list[Text], rows: list[list[Text]], width: int | None, gap: int) -> list[int] | None:
    """The widths of the columns, or None if there is too little room to read them."""
    wanted, least = [], []
    for name, *cells in zip(names, *rows, strict=True):
        body = max((line.cell_len for cell in cells for line in cell.split("\n")), default=0)
        words = [*name.plain.split(), *(piece.rstrip() for cell in cells for piece in pieces(cell.plain))]
        wanted.append(max(name.cell_len, body))
        least.append(max(min(body, _SHORT if body < _SENTENCE else _SENTENCE), *map(cell_len, words), 0))
    if width is None:
        return wanted
    spare = width - sum(least) - gap * (len(least) - 1)
    return _shared(least, wanted, spare) if spare >= 0 else None


def _shared(least: list[int], wanted: list[int], spare: int) -> list[int]:
    """Columns that want little get it first; those that want much share the rest."""
    widths, left = list(least), spare
    order = sorted(range(len(least)), key=lambda i: wanted[i] - least[i])
    for done, i in enumerate(order):
        more = min(wanted[i] - least[i], left // (len(order) - done))
        widths[i] += max(more, 0)
        left -= max(more, 0)
    return widths


def _side_by_side(row: Row, widths: list[int], gap: int, right: Collection[int]) -> Iterator[Text]:
    columns = [fold(cell, width) for cell, width in zip(row, widths, strict=True)]
    for i in range(max(map(len, columns))):
        line = Text()
        for j, (column, width) in enumerate(zip(columns, widths, strict=True)):
            part = column[i] if i < len(column) else Text()
            pad = Text(" " * max(width - part.cell_len, 0))
            line += Text(" " * (gap if j else 0)) + (pad + part if j in right else part + pad)
        line.rstrip()
        yield line


def _under_headings(headings: list[Text], blocks: Iterable[list[Text]]) -> Iterator[Text]:
    """Blocks of lines below their headings; what stands below the same one follows without it."""
    before = None
    for heading, block in zip(headings, blocks, strict=True):
        if heading.plain != before:
            before = heading.plain
            yield Text.assemble(heading, style="bold")
        yield from (Text(" " * _INDENT) + line for line in block)


def _stacked(head: Sequence[str], row: list[Text], width: int) -> Iterator[Text]:
    """All cells but the first with their names, as many in a line as fit; "-" says nothing."""
    colon = "：" if any(re.search(f"[{_WIDE}]", name) for name in head) else ": "
    room, line = width - _INDENT, Text()
    for name, cell in zip(head[1:], row[1:], strict=True):
        if cell.plain in ("", "-"):
            continue
        pair = Text.assemble(name, colon, cell)
        if line and line.cell_len + pair.cell_len + 3 <= room:
            line = Text("   ").join((line, pair))
        else:
            yield from fold(line, room, _INDENT) if line else ()
            line = pair
    yield from fold(line, room, _INDENT) if line else ()
