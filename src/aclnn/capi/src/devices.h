// Devices and contexts: which of the two the calling thread works on.
#pragma once

#include <memory>

#include "stream.h"

namespace aclnn_cpu {

constexpr int kDevices = 2;

struct Context {
  int device = -1;
  bool is_default = false;
};

// The device the thread has set; -1 if it has set none.
int current_device();

// The same for those who need one: 0 if none was set, which ACLNN_CHECK=1 mentions.
int device_in_use(const char* function);

// The default stream of the device in use.
std::shared_ptr<Stream> default_stream();

// Makes what all devices have, once.
void make_devices();

}  // namespace aclnn_cpu
