"""The start of each script: arguments, the packages that it needs, a GPU. One line says what is missing."""
import argparse
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

# What pip is asked for, where it is not the module's name.
PACKAGES = {"transformers": "transformers==5.17.0"}


def require(name):
    """The module of this name. Where it cannot be imported the script ends."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:  # OSError: of the libraries that PyTorch loads
        package = name.partition(".")[0]
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == package
        what = f"{'PyTorch' if package == 'torch' else package} {'is missing' if is_missing else 'cannot be imported'}"
        why = (str(error).splitlines() or [type(error).__name__])[0]
        more = ", which brings Triton and CUPTI" if package == "torch" else ""
        sys.exit(f"error: {what} ({why}): `{sys.executable} -m pip install {PACKAGES.get(package, package)}`{more}")


def require_gpu(torch):
    """Ends the script if PyTorch sees no GPU."""
    if not torch.cuda.is_available():
        built = f"is built for CUDA {torch.version.cuda}" if torch.version.cuda else "is built without CUDA"
        sys.exit(f"error: PyTorch {torch.__version__} sees no GPU: it {built}; there must be an NVIDIA GPU with a "
                 "driver as new (`nvidia-smi`)")


def gpu(torch):
    """The GPU's name, with its driver."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    drivers = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    return f"{torch.cuda.get_device_name(0)} (driver {drivers[0]})"


def parser(doc):
    """A parser whose help is the script's text. Scripts parse before they `require`: help needs no package."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


def pattern(text):
    """For `type=`: a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def positive(text):
    """For `type=`: a whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def output(text):
    """For `type=`: a file to write, looked at before the work is done."""
    if Path(text).is_dir() or not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: it is a folder, or its folder is not there")
    return text


def program(text):
    """For `type=`: the command `pointwise`."""
    found = shutil.which(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"no program {text!r}: `cargo build --release -p pointwise-cli` builds it")
    return found


def parity(doc):
    """The arguments of a script that compares results of `pointwise run`."""
    options = parser(doc)
    options.add_argument("pointwise", type=program, help="the command, such as ./pointwise")
    options.add_argument("device", nargs="?", choices=("cuda", "cpu"), default="cuda")
    return options.parse_args()


def call(command):
    """Runs a command, which says itself what is wrong; where it fails the script ends."""
    if code := subprocess.run(command).returncode:
        sys.exit(f"error: `{' '.join(map(str, command))}` ended with {code}")


def read(path, parse):
    """Returns `parse` of a file's text. Ends the script if the file cannot be read."""
    try:
        return parse(Path(path).read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"error: cannot read {path}: {error}")


def run(main):
    """Runs a script. A file that cannot be read or written ends it in one line, too."""
    try:
        main()
    except OSError as error:
        sys.exit(f"error: {error}")
