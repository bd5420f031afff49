"""`aclnn env`: what one pastes into a bug report."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib import metadata

from rich.cells import set_cell_size

from aclnn import __version__
from aclnn.base import folder, language, layout
from aclnn.base.language import Text
from aclnn.base.status import AclnnError
from aclnn.base.text import visible
from aclnn.cli.options import Lang
from aclnn.cli.screen import show, width
from aclnn.golden.texts import many
from aclnn.runtime import settings

_PACKAGES = ("numpy", "ml_dtypes", "numba", "onednn-cpu-gomp", "torch", "typer", "rich")
_VARIABLES = (
    "ACLNN_LANG",
    "ACLNN_PRODUCT",
    "ACLNN_ENGINE",
    "ACLNN_NUM_THREADS",
    "ACLNN_VERBOSE",
    "ACLNN_CHECK",
    "ACLNN_ONEDNN",
    "ACLNN_PYTHON",
    "ACLNN_CACHE_DIR",
    "ACLNN_MAX_ISA",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
    "ONEDNN_MAX_CPU_ISA",
)


_WIDTH = 20  # of a name


def env(lang: Lang = None) -> None:
    """Prints versions, settings and environment variables, one per line."""
    lines = (f"{set_cell_size(name, _WIDTH)} {visible(value)}" for name, value in facts().items())
    show(part for line in lines for part in layout.fold(line, width(), hang=_WIDTH + 1))


def facts() -> dict[str, str]:
    found = {
        "aclnn-cpu": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        Text("platform", "平台").say(): f"{platform.system()} {platform.machine()}",
        Text("cpu", "处理器").say(): _cpu(),
        Text("product", "产品").say(): _setting(lambda: settings.current_product().text(language.current())),
        Text("engine", "引擎").say(): _setting(settings.current_engine),
        Text("threads", "线程数").say(): _setting(lambda: str(settings.current_threads())),
        Text("language", "语言").say(): language.asked(),
        Text("cache", "缓存").say(): _cache(),
    }
    found |= {package: _version(package) for package in _PACKAGES}
    return found | {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def _cache() -> str:
    """Where native code is kept, and how much of it; whether more can be kept."""
    try:
        place = folder.root()
    except OSError as error:
        return _unusable(str(error))
    files = [path for path in place.rglob("*") if path.is_file()]
    size = f"{sum(path.stat().st_size for path in files) / 1e6:.1f} MB"
    writable = next(path for path in (place, *place.parents) if path.exists())
    cure = Text("it cannot be written: name another with ACLNN_CACHE_DIR", "不可写：请用ACLNN_CACHE_DIR另行指定")
    state = "" if os.access(writable, os.W_OK) else Text("; ", "；").say() + cure.say()
    held = Text(f" ({size} in {many(len(files), 'file')}{state})", f"（{len(files)}个文件，共{size}{state}）")
    return f"{place}{held.say()}"


def _setting(read: Callable[[], str]) -> str:
    try:
        return read()
    except AclnnError as error:
        return _unusable(error.message_zh if language.current() == "zh" else error.message)


def _unusable(why: str) -> str:
    return Text(f"unusable: {why}", f"不可用：{why}").say()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return Text("not installed", "未安装").say()


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or Text("unknown", "未知").say()
