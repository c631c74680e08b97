"""The build of jitdb/kernels.so: numba compiles the kernels, LLVM makes them stand alone, a linker joins them.

python3 build_kernels.py    where numba is installed; a wheel's build and `python3 dev.py build` call it too

The machine need not be this one: LLVM makes code of every kind, and zig links for every system (build_wheels.py).

Each kernel is wrapped to take addresses and numbers. Of that numba makes LLVM's code, and is kept from optimizing it
part by part, and from making machine code of parts, which nobody here would run. Then everything but the wrapper is
made internal, and LLVM optimizes the whole: all that would need numba's run time falls away, as kernels neither
allocate nor raise. One that does is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_uint32
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import Any, NamedTuple
from zlib import crc32

ROOT = Path(__file__).resolve().parent
OBJECTS = ROOT / ".kernels"  # what was compiled, a file a module: a build compiles what changed since
KEPT = 7 * 86_400  # seconds that what is not needed now stays: another branch may need it

# What the linker finds in every process: LLVM makes calls of them.
KNOWN = {"memcpy", "memmove", "memset", "floor"}


class Target(NamedTuple):
    """A kind of machine, as LLVM calls it and, where it is not this one, as zig does."""

    triple: str = ""  # "" is this machine
    linked_as: str = ""

    @property
    def processor(self) -> str:
        """LLVM's name of what every processor of this architecture can do."""
        architecture = self.triple.split("-")[0] or machine()
        return "x86-64-v2" if architecture in ("x86_64", "AMD64") else "generic"


HERE = Target()


def build(target: Target = HERE, path: Path | None = None) -> Path:
    """Make the library, of this machine unless it is there already, of these very objects. Raises BuildFailed."""
    sys.path.insert(0, str(ROOT))
    os.environ["JITDB_KERNELS"] = "numba"
    from jitdb.common import kernel_library

    sources, objects = kernel_library.sources(), _objects(target)
    path = path or kernel_library.PATH
    if target == HERE and _is_of(objects):
        return path
    command = _linker(target)
    OBJECTS.mkdir(exist_ok=True)
    stale = [part for part in objects if not part.path.exists()]
    processors = os.cpu_count() or 1
    shares = [share for first in range(processors) if (share := stale[first::processors])]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processors) as pool:
        caches = [Path(folder, str(number)) for number in range(len(shares))]
        list(pool.map(_compile_apart, [target] * len(shares), shares, caches))
        if _objects(target) != objects:  # what was compiled is of neither state, whatever it is called
            for part in stale:
                part.path.unlink(missing_ok=True)
            raise BuildFailed("a source was changed meanwhile: build anew")
        told, made = Path(folder, "told.o"), Path(folder, "kernels.so")
        told.write_bytes(_told(target, sources, _sum_of(objects)))
        _run([*command, "-shared", "-o", str(made), str(told), *(str(part.path) for part in objects)])
        _write(path, made.read_bytes())
    for left in set(OBJECTS.iterdir()) - {part.path for part in objects}:
        if left.stat().st_mtime < time.time() - KEPT:
            left.unlink(missing_ok=True)
    return path


def _linker(target: Target) -> list[str]:
    """The command that links, without what is linked: the machine's own, or zig, which links for all."""
    is_apple = "-macos" in target.linked_as or (target == HERE and sys.platform == "darwin")
    alone = ["-Wl,-x", "-Wl,-install_name,@rpath/kernels.so"] if is_apple else ["-nostdlib", "-s"]
    if target == HERE:
        for name in ("cc", "gcc", "clang", "ld"):
            if found := shutil.which(name):
                return [found, *(alone if name != "ld" else [])]
    if find_spec("ziglang") is None:
        raise BuildFailed("there is no C compiler or linker: install one, or `pip install ziglang`, which brings one")
    zig = [sys.executable, "-m", "ziglang", "cc"]
    return [*zig, *(["-target", target.linked_as] if target.linked_as else []), *alone]


class Object(NamedTuple):
    """The machine code of a module: made where the file is not there."""

    module: str
    path: Path


def _is_of(objects: list[Object]) -> bool:
    """Whether the library that is there was linked of these: how they are compiled is in their names, too."""
    from jitdb.common import kernel_library

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was made of other sources: so it is made anew
        found = kernel_library.library()
    try:
        return found is not None and c_uint32.in_dll(found, "jitdb_objects").value == _sum_of(objects)
    except ValueError:  # of a build that said nothing of them
        return False


def _sum_of(objects: list[Object]) -> int:
    return crc32(" ".join(part.path.name for part in objects).encode())


def _objects(target: Target) -> list[Object]:
    """Those that the library is made of, as the sources are now."""
    from jitdb.common import kernel_library

    return [_object(target, module) for module in kernel_library.MODULES]


def _object(target: Target, module: str) -> Object:
    """Named by all that it is made of, which numba's own cache does not see: a part that a part calls."""
    from jitdb.common.kernel_library import ARRAYS, MODULES, PARTS

    made_of, todo = {"build_kernels"}, {module}
    while todo:
        made_of.add(name := todo.pop())
        imports = re.findall(r"^ *from ([\w.]+) import (\w*)", _source(name).read_text(), re.M)
        named = {package for package, _ in imports} | {".".join(parts) for parts in imports}
        todo |= (named & {*MODULES, *PARTS}) - made_of
    digest = blake2b(
        repr((sys.version, version("numba"), target.triple, target.processor, ARRAYS)).encode(), digest_size=8
    )
    for name in sorted(made_of):
        digest.update(_source(name).read_bytes())
    return Object(module, OBJECTS / f"{module}.{digest.hexdigest()}.o")


def _source(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


class BuildFailed(Exception):
    """There is no compiler, or what it says."""


def _run(command: list[str], **environment: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")


def _compile_apart(target: Target, parts: list[Object], cache: Path) -> None:
    """Compile modules in a process of its own, which numba knows the processor of."""
    _run(
        [sys.executable, __file__, target.triple, *(str(word) for part in parts for word in part)],
        NUMBA_CPU_NAME=HERE.processor, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(cache),
        JITDB_KERNELS="numba",
    )  # fmt: skip


def compile_part(target: Target, part: Object) -> None:
    """Write its object file."""
    import llvmlite.binding as llvm

    from jitdb.common import kernel_library

    _spare_numba_work()
    machine = _machine(target)
    whole = llvm.parse_assembly("")
    whole.triple, whole.data_layout = machine.triple, str(machine.target_data)
    for function in _kernels(part.module):
        whole.link_in(_alone(function, kernel_library.symbol(function), machine))
    _write(part.path, machine.emit_object(whole))


def _machine(target: Target) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = target.triple or llvm.get_default_triple()
    made = llvm.Target.from_triple(triple)
    return made.create_target_machine(cpu=target.processor, opt=3, reloc="pic", codemodel="small")


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: whatever has this name is believed."""
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _spare_numba_work() -> None:
    """Let numba end at LLVM's code of each function, as it came: no wrappers for Python, and nothing to be run here.

    Where another numba has no such methods, it only takes twice as long.
    """
    from numba import njit
    from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
    from numba.core.cpu import CPUContext

    from jitdb.common import kernels

    njit("int64(int64)")(lambda number: number)  # its run time is compiled with the first function, and is called
    kernels.NUMBA.update(_RAW, cache=False)

    def no_executable(context: Any, library: Any, description: Any, environment: Any) -> Any:
        library._ensure_finalized()
        return [].append  # numba takes a builtin, and tells functions apart by it

    for owner, name, instead in (
        (CPUContext, "get_executable", no_executable),
        (CPUCodeLibrary, "_optimize_functions", _set_layout),
        (CPUCodeLibrary, "_optimize_final_module", lambda library: None),
        (JITCodeLibrary, "_finalize_specific", lambda library: None),
        (JITCPUCodegen, "_add_module", lambda codegen, module: None),
    ):
        setattr(owner, name, instead)


_RAW = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _set_layout(library: Any, module: Any) -> None:
    module.data_layout = library._codegen._data_layout


def _kernels(module: str) -> Iterator[Callable[..., Any]]:
    from jitdb.common import kernels

    import_module(module)
    return (function for function in kernels.KERNELS if function.__module__ == module)


def _alone(function: Callable[..., Any], symbol: str, machine: Any) -> Any:
    """The kernel as a module of LLVM that needs nothing."""
    import llvmlite.binding as llvm
    from numba import njit

    wrapper, signature = _wrapped(function)
    compiled = njit(signature, error_model="numpy", **_RAW)(wrapper)
    code = compiled.inspect_llvm(compiled.signatures[0])
    name = next(name for name in re.findall(r'^define [^@]*@"?([\w.$]+)"?\(', code, re.M) if name.startswith("_ZN"))
    module = llvm.parse_assembly(code.replace(f"@{name}(", f"@{symbol}("))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for part in [*module.functions, *module.global_variables]:
        if not part.is_declaration and part.name != symbol:
            part.linkage = "internal"
    for _ in range(2):  # references that are counted up and down fall away after the first, and what hung on them
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(module, builder)
    unknown = {
        part.name for part in module.functions
        if part.is_declaration and not part.name.startswith("llvm.") and part.name not in KNOWN
    }  # fmt: skip
    if unknown:
        raise BuildFailed(f"{symbol} allocates or raises: it calls {', '.join(sorted(unknown))}")
    return module


def _wrapped(function: Callable[..., Any]) -> tuple[Callable[..., Any], Any]:
    """A function of addresses and numbers that calls the kernel and writes what it gives; and its types."""
    import numpy as np
    from numba import carray, njit, types
    from numba.np.numpy_support import from_dtype

    from jitdb.common.kernel_library import ARRAYS, Signature

    signature = Signature.of(function)
    kinds: list[Any] = []
    names: list[str] = []
    passed = []
    for number, take in enumerate(signature.takes):
        if take in ARRAYS:
            kind, dimensions = ARRAYS[take]
            sizes = [f"n{number}_{axis}" for axis in range(dimensions)]
            kinds += [types.CPointer(from_dtype(np.dtype(kind))), *[types.int64] * dimensions]
            names += [f"a{number}", *sizes]
            passed.append(f"carray(a{number}, ({', '.join(sizes)},))")
        else:
            kinds.append(types.float64 if take == "float" else types.int64)
            names.append(f"a{number}")
            passed.append(f"a{number}")
    results = ", ".join(f"r{place}" for place in range(len(signature.gives)))
    lines = [f"def wrapper({', '.join(names)}, ints, floats):"]
    lines.append(f"    {results + ' = ' if results else ''}kernel({', '.join(passed)})")
    for place, give in enumerate(signature.gives):
        lines.append(f"    {'floats' if give == 'float' else 'ints'}[{place}] = r{place}")
    scope: dict[str, Any] = {"carray": carray, "kernel": njit(error_model="numpy")(function)}
    exec("\n".join(lines), scope)
    pointers = [types.CPointer(types.int64), types.CPointer(types.float64)]
    return scope["wrapper"], types.void(*kinds, *pointers)


def _told(target: Target, sources: int, objects: int) -> bytes:
    """The object of what the library says of itself: what it was made of."""
    import llvmlite.binding as llvm

    text = f"@jitdb_sources = constant i32 {sources}\n@jitdb_objects = constant i32 {objects}\n"
    return bytes(_machine(target).emit_object(llvm.parse_assembly(text)))


if __name__ == "__main__":
    try:
        if len(sys.argv) == 1:
            print(build())
        else:
            sys.path.insert(0, str(ROOT))
            triple, *parts = sys.argv[1:]
            for module, path in zip(*[iter(parts)] * 2, strict=True):
                compile_part(Target(triple), Object(module, Path(path)))
    except BuildFailed as error:
        sys.exit(f"the kernels cannot be built: {error}")
