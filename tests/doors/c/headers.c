/* The headers are C, too. */
#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_elu_backward.h"

int main(void) {
  aclDataType type = ACL_BF16;
  return aclDataTypeSize(type) == 2 && ACL_SUCCESS == 0 && aclInit(0) == ACL_SUCCESS ? 0 : 1;
}
