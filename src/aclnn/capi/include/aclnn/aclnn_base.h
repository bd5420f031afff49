// What every operator header needs: the status type and the opaque objects.
#ifndef ACLNN_CPU_ACLNN_ACLNN_BASE_H
#define ACLNN_CPU_ACLNN_ACLNN_BASE_H

#include "aclnn/acl_meta.h"

#endif
