// Half precision, and sizes of types.
#include <cstring>

#include "acl/acl.h"
#include "dtype_tables.h"

namespace {

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

extern "C" {

size_t aclDataTypeSize(aclDataType dataType) { return aclnn_cpu::itemsize_of(dataType); }

float aclFloat16ToFloat(uint16_t value) {
  const uint32_t sign = (value & 0x8000u) << 16;
  const uint32_t exponent = value >> 10 & 0x1Fu;
  const uint32_t mantissa = value & 0x3FFu;
  if (exponent == 0x1F) return float_of(sign | 0x7F800000u | mantissa << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal, or zero
  return float_of(sign | bits_of(tiny));
}

uint16_t aclFloatToFloat16(float value) {
  const uint32_t bits = bits_of(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | (size >> 13 & 0x3FFu));  // NaN, made quiet
  if (size >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65520 and above round to infinity
  if (size < 0x38800000u) {
    // Below 2^-14 halves are multiples of 2^-24: the mantissa shifted there, rounded to even. In integers, since the
    // program may have set another rounding.
    const uint32_t shift = 126 - (size >> 23);
    if (shift > 24) return sign;
    const uint32_t mantissa = (size & 0x7FFFFFu) | 0x800000u, half = 1u << (shift - 1);
    const uint32_t down = mantissa >> shift, rest = mantissa & (2 * half - 1);
    return static_cast<uint16_t>(sign | (down + (rest > half || (rest == half && (down & 1u)))));
  }
  const uint32_t to_even = 0xFFFu + (size >> 13 & 1u);
  return static_cast<uint16_t>(sign | (size - 0x38000000u + to_even) >> 13);
}

}  // extern "C"
