"""Formulas as MathML, made while building: browsers draw it themselves, with no script and no network.

Docutils has the converter; Sphinx only has to be told to use it. Machines without a mathematical font have no
mathematical italics either, so single letters are marked, and the style sheet slants ordinary ones.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

_LETTER = re.compile(r"<mi>(\w)</mi>")


def _mathml(tex: str, as_block: bool) -> str:
    return _LETTER.sub(r'<mi class="letter">\1</mi>', tex2mathml(tex, as_block=as_block))


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
