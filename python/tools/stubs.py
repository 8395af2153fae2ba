"""Writes stand-ins for NVIDIA's libraries into a folder with torch, so that `import torch` works without them.

PyPI has no x86-64 wheel of torch for the CPU alone. The CUDA wheel, installed with `pip install --no-deps`, loads
NVIDIA's libraries when it is imported, but calls none of them on a machine without a GPU. Each stand-in here has the
symbols and the version nodes that torch's own libraries ask for, and every function returns an error code. For tests on
CPUs only.

    python stubs.py SITE_PACKAGES
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# torch looks into nvidia/<folder>/lib by the names of the wheels that it depends on.
FOLDERS = {
    "libcudnn.so.9": "cudnn",
    "libnvshmem_host.so.3": "nvshmem",
    "libnccl.so.2": "nccl",
    "libcusparseLt.so.0": "cusparselt",
}

# Symbols without a version node are found by their prefix.
PREFIXES = {
    "libcuda": r"cu[A-Z]",
    "libcudart": r"(__)?cuda",
    "libcublas": r"cublas(?!Lt)",
    "libcublasLt": r"cublasLt",
    "libcudnn": r"cudnn",
    "libcufft": r"cufft",
    "libcufile": r"cuFile",
    "libcupti": r"cupti",
    "libcurand": r"curand",
    "libcusolver": r"cusolver",
    "libcusparse": r"cusparse(?!Lt)",
    "libcusparseLt": r"cusparseLt",
    "libnccl": r"nccl",
    "libnvrtc": r"nvrtc",
    "libnvshmem_host": r"nvshmem",
}

# A version node that is not named like its library.
NODES = {"libnvshmem_host.so.3": "NVSHMEM"}


def readelf(*arguments):
    """The lines of readelf."""
    return subprocess.run(["readelf", *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def wanted(libraries):
    """The needs of torch's libraries: names of NVIDIA's libraries, symbols by version node, symbols without one."""
    needed, versioned, plain = set(), collections.defaultdict(set), set()
    for library in libraries:
        for line in readelf("-dW", library):
            if found := re.search(r"NEEDED.*\[(lib(?:cu|nv|nccl)[^\]]*)\]", line):
                needed.add(found[1])
        for line in readelf("--dyn-syms", "-W", library):
            fields = line.split()
            if len(fields) < 8 or fields[6] != "UND":
                continue
            if found := re.match(r"(.+)@+([^@ ]+)$", fields[7]):
                versioned[found[2]].add(found[1])
            else:
                plain.add(fields[7])
    return needed, versioned, plain


def write(path, symbols, node):
    """Compiles a library of functions that return an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, versions = pathlib.Path(folder, "stub.c"), pathlib.Path(folder, "stub.map")
        lines = [f"int {symbol}(void) {{ return 100; }}" for symbol in sorted(symbols)]
        source.write_text("\n".join(lines or ["int pointwise_stub;"]) + "\n")
        flags = []
        if node:
            versions.write_text(f"{node} {{ global: *; }};\n")
            flags = [f"-Wl,--version-script={versions}"]
        command = ["cc", "-w", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", path, source, *flags]
        subprocess.run(command, check=True)


def main(site):
    needed, versioned, plain = wanted((site / "torch/lib").glob("*.so"))
    for name in sorted(needed):
        node = NODES.get(name, name)
        symbols = versioned.get(node)
        if symbols is None:
            pattern = PREFIXES[name.split(".so")[0]]
            symbols, node = {symbol for symbol in plain if re.match(pattern, symbol)}, None
        write(site / "nvidia" / FOLDERS.get(name, "cu13") / "lib" / name, symbols, node)
    print(f"{len(needed)} stand-ins in {site / 'nvidia'}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
