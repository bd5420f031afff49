#!/bin/sh
# For any CI server: run this at the top of the repository, with ci.sh, cases.csv and tests/ beside it.
# Keep the folder .aclnn between runs: it has the compiled kernels and the C++ library.
set -eu
python3 -m venv .venv
. .venv/bin/activate
pip install "${ACLNN_PACKAGE:-aclnn-cpu[fast]}"
export ACLNN_CACHE_DIR="${ACLNN_CACHE_DIR:-$PWD/.aclnn}"
aclnn env
sh ci.sh
