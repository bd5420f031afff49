// Single-operator execution through models is not part of this product; the operators are in aclnnop/.
#ifndef ACLNN_CPU_ACL_ACL_OP_H
#define ACLNN_CPU_ACL_ACL_OP_H

#include "acl/acl_base.h"

#endif
