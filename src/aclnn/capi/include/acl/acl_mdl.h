// Offline models are not part of this product.
#ifndef ACLNN_CPU_ACL_ACL_MDL_H
#define ACLNN_CPU_ACL_ACL_MDL_H

#include "acl/acl_base.h"

#endif
