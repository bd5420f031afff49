// Functions without a meaning here link, answer 207000 and say which they were.
#include "suite.h"

int main() {
  int value = 0;
#define TRY(name)                                 \
  EXPECT_CODE(207000, name(&value, 1, nullptr));  \
  EXPECT(said(#name ": there is no such thing"));
  ACLNN_CPU_EACH_UNSUPPORTED(TRY)
  std::puts("fine");
}
