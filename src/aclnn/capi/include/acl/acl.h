// The one header most programs include: runtime, memory, streams, events, and the objects operators take.
#ifndef ACLNN_CPU_ACL_ACL_H
#define ACLNN_CPU_ACL_ACL_H

#include "acl/acl_base.h"
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_rt.h"
#include "acl/acl_unsupported.h"
#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

// Call once before anything else. A second call answers ACL_ERROR_REPEAT_INITIALIZE and changes nothing. configPath may
// be null; a file that cannot be read is ACL_ERROR_INVALID_PARAM (its contents do not matter here).
ACLNN_CPU_API aclError aclInit(const char* configPath);

// Ends the use of the runtime. Destroy and free functions still work afterwards. With ACLNN_CHECK=1 everything that is
// still alive is listed on stderr.
ACLNN_CPU_API aclError aclFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
