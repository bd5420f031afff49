// Written by `make gen` from the contracts; do not edit.
#pragma once

#include <strings.h>

#include <cstddef>

namespace aclnn_cpu {

// Bytes of one element; 0 for a type that does not exist, or whose elements share bytes.
inline size_t itemsize_of(int dtype) {
  switch (dtype) {
    case 0: return 4;
    case 1: return 2;
    case 2: return 1;
    case 3: return 4;
    case 4: return 1;
    case 6: return 2;
    case 7: return 2;
    case 8: return 4;
    case 9: return 8;
    case 10: return 8;
    case 11: return 8;
    case 12: return 1;
    case 16: return 8;
    case 17: return 16;
    case 27: return 2;
    case 34: return 1;
    case 35: return 1;
    case 36: return 1;
    case 33: return 4;
    case 37: return 1;
    default: return 0;
  }
}

// The soc name of a product, which may be named in any of its ways and in any case; the default's for anything else.
inline const char* soc_name_of(const char* product) {
  static const char* const names[][2] = {
      {"a2", "Ascend910B1"},
      {"atlas a2", "Ascend910B1"},
      {"ascend910b1", "Ascend910B1"},
      {"a3", "Ascend910_93"},
      {"atlas a3", "Ascend910_93"},
      {"ascend910_93", "Ascend910_93"},
      {"950", "Ascend950"},
      {"ascend 950", "Ascend950"},
      {"ascend950", "Ascend950"},
      {"310p", "Ascend310P"},
      {"atlas inference", "Ascend310P"},
      {"ascend310p", "Ascend310P"},
      {"910", "Ascend910"},
      {"atlas training", "Ascend910"},
      {"ascend910", "Ascend910"},
      {"310b", "Ascend310B"},
      {"atlas 200i/500 a2", "Ascend310B"},
      {"ascend310b", "Ascend310B"},
      {"cpu", "cpu"},
  };
  for (const auto& entry : names) {
    if (strcasecmp(product, entry[0]) == 0) return entry[1];
  }
  return "Ascend910B1";
}

}  // namespace aclnn_cpu
