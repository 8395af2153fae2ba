#!/bin/sh
# Tests an installed wheel on a CUDA device: sh python/tools/check_on_gpu.sh FOLDER
#
# FOLDER has the wheel and pytest, which `pip install --target FOLDER --no-deps WHEEL` and `pip install --target FOLDER pytest`
# put there, on any machine with the same Python. torch (2.10 or newer, with CUDA) comes from the machine. Run it from the
# root of a checkout: the tests come from there, the package from the folder.
set -e
export PYTHONPATH="$1"
python3 -c "import pointwise, torch; print('pointwise', pointwise.__version__, pointwise.__file__); assert torch.cuda.is_available()"
python3 -m pytest -q -p no:cacheprovider python/tests --device cuda
python3 python/tools/host_times.py cuda
