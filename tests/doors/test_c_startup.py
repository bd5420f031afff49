"""Starting Python inside a C++ program, wherever and however that program runs: computed, or 561000 with the reason."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from aclnn.capi import engine, interpreter, prefix
from tests.doors.toolchain import PROGRAMS, built, compile_program, needs_compiler, run_program

pytestmark = needs_compiler

COMPUTED = "[2, -0, 0, 1]\n"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

FROM_CTYPES = """
import ctypes, sys
lib = ctypes.{how}(sys.argv[1])
for name in ("aclCreateTensor", "aclCreateScalar"):
    getattr(lib, name).restype = ctypes.c_void_p
lib.aclGetRecentErrMsg.restype = ctypes.c_char_p
four, values = ctypes.c_int64 * 1, ctypes.c_float * 4
shape, y, out, one = four(4), values(-2, -1, 0, 1), values(), ctypes.c_float(1)
def tensor(data):
    one, none = ctypes.c_uint64(1), ctypes.c_int64(0)
    return ctypes.c_void_p(lib.aclCreateTensor(shape, one, 0, None, none, 2, shape, one, data))
scalar = ctypes.c_void_p(lib.aclCreateScalar(ctypes.byref(one), 0))
size, executor = ctypes.c_uint64(), ctypes.c_void_p()
code = lib.aclnnEluBackwardGetWorkspaceSize(tensor(y), scalar, scalar, scalar, ctypes.c_bool(True), tensor(y),
    tensor(out), ctypes.byref(size), ctypes.byref(executor))
if code == 0: code = lib.aclnnEluBackward(None, size, executor, None)
if code == 0: code = lib.aclrtSynchronizeStream(None)
print(code, lib.aclGetRecentErrMsg().decode())
print("[%g, %g, %g, %g]" % tuple(out))
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(PROGRAMS / "tiny.cpp", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def library() -> Path:
    return built() / "lib64" / "libopapi.so"


def other_python() -> str:
    """A Python of another version."""
    minors = [m for m in range(8, 16) if m != sys.version_info.minor]
    named = (shutil.which(f"python3.{m}") for m in minors)
    beside = (p for m in minors for p in sorted(Path(sys.base_prefix).parent.glob(f"3.{m}.*/bin/python3")))
    for found in (*named, *beside):
        if found and subprocess.run([str(found), "-c", "import ctypes"], capture_output=True).returncode == 0:
            return str(found)
    pytest.skip("there is no Python of another version here")


def test_with_an_empty_environment(tiny: Path) -> None:
    ended = run_program([tiny], {})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, COMPUTED, "")


def test_with_a_foreign_python_on_the_path(tiny: Path, tmp_path: Path) -> None:
    for name in ("python", "python3"):
        script = tmp_path / name
        script.write_text("#!/bin/sh\nexit 9\n")
        script.chmod(0o755)
    hostile = {
        "PATH": str(tmp_path),
        "PYTHONHOME": "/nowhere",
        "PYTHONPATH": str(tmp_path),
        "PYTHONSTARTUP": "/nowhere",
    }
    (tmp_path / "numpy.py").write_text("raise SystemExit(8)")
    ended = run_program([tiny], hostile)
    assert (ended.returncode, ended.stdout) == (0, COMPUTED)


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "no_SUCH"])
def test_in_any_locale(locale: str, tiny: Path) -> None:
    assert run_program([tiny], {"LC_ALL": locale}).stdout == COMPUTED


@pytest.mark.parametrize("scope", ["local", "global"])
def test_loaded_by_dlopen(scope: str, library: Path, tmp_path: Path) -> None:
    program = compile_program(PROGRAMS / "dlopened.cpp", tmp_path, link=[])
    ended = run_program([program, library, scope], {})
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, COMPUTED, "")


def test_with_a_foreign_libpython_on_the_library_path(tiny: Path, tmp_path: Path) -> None:
    source = tmp_path / "foreign.c"
    source.write_text("int Py_IsInitialized(void) { return 1; }")
    name = Path(interpreter.libpython() or "").name
    command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", str(source), "-o", str(tmp_path / name)]
    subprocess.run(command, check=True)
    ended = run_program([tiny], {"LD_LIBRARY_PATH": str(tmp_path)})
    assert (ended.returncode, ended.stdout) == (0, COMPUTED)


@pytest.mark.parametrize("how", ["CDLL", "PyDLL"])
def test_from_ctypes_in_the_same_python(how: str, library: Path) -> None:
    ended = run_program([sys.executable, "-c", FROM_CTYPES.replace("{how}", how), library])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 \n" + COMPUTED, "")


def test_python_ends_with_work_in_flight(library: Path) -> None:
    """Python closes the engine before it takes itself apart: the workers are done, and nobody comes back."""
    once = FROM_CTYPES.replace("{how}", "CDLL")
    busy = """
n, kept = 1 << 18, []
shape, big, result = four(n), (ctypes.c_float * n)(), (ctypes.c_float * n)()
for i in range(40):
    stream = ctypes.c_void_p()
    if i % 10 == 0: lib.aclrtCreateStream(ctypes.byref(stream))
    assert lib.aclnnEluBackwardGetWorkspaceSize(tensor(big), scalar, scalar, scalar, ctypes.c_bool(False), tensor(big),
        tensor(result), ctypes.byref(size), ctypes.byref(executor)) == 0
    kept.append(scratch := ctypes.create_string_buffer(size.value + 1))
    assert lib.aclnnEluBackward(scratch, size, executor, stream) == 0
"""
    for _ in range(3):
        ended = run_program([sys.executable, "-c", once + busy, library])
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 \n" + COMPUTED, "")


@pytest.mark.long
@pytest.mark.parametrize("seconds", [10.5, 30])
def test_python_ends_under_a_kernel_that_takes_longer_than_an_exit_waits(seconds: float, library: Path) -> None:
    """The kernel, which is Python's, comes back while Python takes itself apart (10.5 s), or never (30 s)."""
    once = FROM_CTYPES.replace("{how}", "CDLL")
    slow = f"""
import time
from aclnn.capi import engine
engine.BoundPlan.run = lambda self, addresses: time.sleep({seconds})
class Late:
    def __del__(self, sleep=time.sleep): sleep(2)
sys.late = Late()
assert lib.aclnnEluBackwardGetWorkspaceSize(tensor(y), scalar, scalar, scalar, ctypes.c_bool(False), tensor(y),
    tensor(out), ctypes.byref(size), ctypes.byref(executor)) == 0
assert lib.aclnnEluBackward(None, size, executor, None) == 0
"""
    ended = run_program([sys.executable, "-c", once + slow, library], {**os.environ, "ACLNN_ENGINE": "numpy"})
    said = "aclnn: the process exits with 1 job left on its streams after 10 seconds; it is dropped.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 \n" + COMPUTED, said)


def test_from_ctypes_in_the_same_version_without_our_packages(library: Path) -> None:
    """The bare interpreter below a virtual environment finds the environment's packages through the library."""
    bare = Path(sys.base_prefix) / "bin" / f"python{VERSION}"
    if not bare.exists():
        pytest.skip("the interpreter below this environment is not here")
    ended = run_program([bare, "-S", "-c", FROM_CTYPES.replace("{how}", "CDLL"), library])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 \n" + COMPUTED, "")


def test_from_ctypes_in_another_version(library: Path) -> None:
    """The engine's own Python serves from a process beside this one."""
    for how in ("CDLL", "PyDLL"):
        ended = run_program([other_python(), "-c", FROM_CTYPES.replace("{how}", how), library])
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 \n" + COMPUTED, "")


def test_another_version_where_the_engines_python_is_gone(library: Path, tmp_path: Path) -> None:
    """One that describes itself well and then does not serve: an answer with both reasons, and nothing on stderr."""
    ask = [sys.executable, "-c", "from aclnn.capi.interpreter import describe; describe()"]
    version, _, *rest = subprocess.run(ask, capture_output=True, text=True).stdout.splitlines()
    python = tmp_path / "python"
    described = " ".join(map(shlex.quote, [version, str(python), *rest]))
    for end in ("exit 3", "exec 2>/dev/null /no/such/program"):
        cases = f"*describe*) printf '%s\\n' {described};; *) {end};;"
        python.write_text(f"#!/bin/sh\ncase $* in {cases} esac\n")
        python.chmod(0o755)
        once = FROM_CTYPES.replace("{how}", "CDLL")
        ended = run_program([other_python(), "-c", once, library], {**os.environ, "ACLNN_PYTHON": str(python)})
        assert ended.stdout.startswith("561000 aclnnEluBackward: the process already has Python 3."), ended.stderr
        assert f"Python {VERSION} does not serve beside it either: the process that computes" in ended.stdout
        assert (ended.stdout.splitlines()[1], ended.stderr) == ("[0, 0, 0, 0]", "")


IN_ANOTHER_PROCESS = """
import os, signal, time
def helpers():
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline") as file:
                if "aclnn.capi.remote" in file.read(): found.append(int(entry))
        except OSError:
            pass
    return found
def mine():
    return [h for h in helpers() if h not in before]
"""


def test_the_process_beside_ends_with_the_program_and_may_be_killed(library: Path) -> None:
    """Killed under a program it leaves an answer and a sentence; programs that wait for their children never see it."""
    once = FROM_CTYPES.replace("{how}", "CDLL")
    killed = """
os.kill(mine()[0], signal.SIGKILL)
try:
    print(os.wait())
except ChildProcessError:
    print("no child")
size, executor = ctypes.c_uint64(), ctypes.c_void_p()
for _ in range(2):
    print(lib.aclnnEluBackwardGetWorkspaceSize(tensor(y), scalar, scalar, scalar, ctypes.c_bool(True), tensor(y),
        tensor(out), ctypes.byref(size), ctypes.byref(executor)), lib.aclGetRecentErrMsg().decode())
"""
    ended = run_program([other_python(), "-c", IN_ANOTHER_PROCESS + "before = helpers()" + once + killed, library])
    gone = "561000 the process that computes for this one has ended; operators are no longer taken.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0 \n" + COMPUTED + "no child\n" + 2 * gone, "")
    left = "print(mine()[0])"
    ended = run_program([other_python(), "-c", IN_ANOTHER_PROCESS + "before = helpers()" + once + left, library])
    beside = Path("/proc") / ended.stdout.split()[-1]
    for _ in range(100):
        if not beside.exists():
            break
        time.sleep(0.1)
    assert not beside.exists()


def test_a_chosen_python(tiny: Path) -> None:
    assert run_program([tiny], {"ACLNN_PYTHON": sys.executable}).stdout == COMPUTED


@pytest.mark.parametrize("choice", ["/no/such/python", "/bin/false", "/"])
def test_a_chosen_python_that_is_none(choice: str, tiny: Path) -> None:
    ended = run_program([tiny], {"ACLNN_PYTHON": choice})
    assert ended.returncode == 561000 % 256
    text = f"ACLNN_PYTHON is {choice}, which is no Python with aclnn-cpu installed; it must be one."
    assert ended.stdout == f"561000 aclnnEluBackward: {text}\n[0, 0, 0, 0]\n"


def described(script: Path, **changed: str) -> str:
    """A stand-in for a Python that describes itself as something."""
    here = interpreter.current()._replace(**changed)
    script.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(here) + "\nEND\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"library": "/gone/libpython.so"}, f"on Debian and Ubuntu it comes with the package libpython{VERSION}."),
        ({"library": ""}, f"there is no shared libpython{VERSION}"),
        (
            {"executable": "/gone/python"},
            "the Python this library was built for is gone: /gone/python; if it has moved",
        ),
        ({"stdlib": "/gone/lib"}, "the standard library of Python is gone: /gone/lib"),
    ],
)
def test_a_python_with_a_part_missing(changed: dict[str, str], words: str, tiny: Path, tmp_path: Path) -> None:
    ended = run_program([tiny], {"ACLNN_PYTHON": described(tmp_path / "python", **changed)})
    assert words in ended.stdout
    assert ended.stdout.startswith("561000 aclnnEluBackward: ")
    assert ended.stdout.endswith("[0, 0, 0, 0]\n")


def test_a_library_that_is_no_libpython(tiny: Path, tmp_path: Path) -> None:
    not_a_library = tmp_path / "libpython.so"
    not_a_library.write_text("text")
    ended = run_program([tiny], {"ACLNN_PYTHON": described(tmp_path / "python", library=str(not_a_library))})
    assert ended.stdout.startswith("561000 aclnnEluBackward: libpython cannot be loaded: ")


def test_an_engine_that_cannot_be_imported(tiny: Path, tmp_path: Path) -> None:
    """A bare Python without our packages, and nothing recorded that would help it."""
    bare = Path(sys.base_prefix) / "bin" / f"python{VERSION}"
    if sys.prefix == sys.base_prefix or not bare.exists():
        pytest.skip("this Python is not a virtual environment")
    ended = run_program([tiny], {"ACLNN_PYTHON": described(tmp_path / "python", executable=str(bare), roots="")})
    assert "cannot load the engine: No module named 'aclnn'" in ended.stdout
    assert ended.stdout.endswith("[0, 0, 0, 0]\n")


def test_library_and_engine_of_different_versions_do_not_talk() -> None:
    refused = engine.start("another version", 0)
    assert isinstance(refused, tuple)
    assert refused[0] == 561000
    assert "build it again" in refused[1]


def test_signal_handlers_and_locale_stay_as_they_were(tmp_path: Path) -> None:
    tiny_text = (PROGRAMS / "tiny.cpp").read_text(encoding="utf-8")
    checked = tiny_text.replace("int main() {", "int main() {\n" + textwrap.indent(BEFORE, "  ")).replace(
        "  return code;", textwrap.indent(AFTER, "  ") + "\n  return code;"
    )
    source = tmp_path / "untouched.cpp"
    source.write_text("#include <clocale>\n#include <csignal>\n#include <string>\n" + checked, encoding="utf-8")
    ended = run_program([compile_program(source, tmp_path)])
    assert (ended.returncode, ended.stdout) == (0, COMPUTED)


BEFORE = """const std::string locale_before = setlocale(LC_ALL, nullptr);
const auto handler = [](int) {};
std::signal(SIGINT, handler);
std::signal(SIGPIPE, SIG_DFL);"""
AFTER = """if (locale_before != setlocale(LC_ALL, nullptr)) return 91;
if (std::signal(SIGINT, SIG_DFL) != static_cast<void (*)(int)>(handler)) return 92;
if (std::signal(SIGPIPE, SIG_IGN) != SIG_DFL) return 93;"""


@pytest.mark.long
def test_a_moved_environment(tmp_path: Path) -> None:
    """A library built in one place says what is missing after a move, and works again when told where Python is."""
    old, new = tmp_path / "old", tmp_path / "new"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(old)], check=True)
    site = next(old.glob("lib/python3*/site-packages"))
    (site / "ours.pth").write_text("\n".join(interpreter.current().roots.split(os.pathsep)))
    env = {**os.environ, "ACLNN_CACHE_DIR": str(tmp_path / "cache")}
    program = "from aclnn.capi.build import build; print(build())"
    made = subprocess.run([str(old / "bin/python"), "-c", program], env=env, capture_output=True, text=True, check=True)
    folder = Path(made.stdout.strip())
    tiny = compile_program(PROGRAMS / "tiny.cpp", tmp_path, link=prefix.link_flags(folder))
    assert run_program([tiny], {}).stdout == COMPUTED
    old.rename(new)
    ended = run_program([tiny], {})
    assert ended.stdout.startswith(f"561000 aclnnEluBackward: the Python this library was built for is gone: {old}/bin")
    assert run_program([tiny], {"ACLNN_PYTHON": str(new / "bin/python")}).stdout == COMPUTED
