// There is nothing to compile here; the operators are in aclnnop/.
#ifndef ACLNN_CPU_ACL_ACL_OP_COMPILER_H
#define ACLNN_CPU_ACL_ACL_OP_COMPILER_H

#include "acl/acl_base.h"

#endif
