#!/bin/sh
# Compiles and runs every C++ test of tests/, then every case of cases.csv.
# Needs g++ and aclnn-cpu, and no NPU.
set -eu
export ACLNN_CHECK=1  # also says what an NPU would not forgive
mkdir -p build
failed=0
for source in tests/*.cpp; do
  program=build/$(basename "$source" .cpp)
  if aclnn cxx -std=c++17 -Wall "$source" -o "$program" && "$program"; then
    echo "pass: $source"
  else
    echo "FAIL: $source"
    failed=1
  fi
done
aclnn run cases.csv --check || failed=1
exit $failed
