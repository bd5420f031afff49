// The mailboxes of threads that run host callbacks.
#pragma once

#include <cstdint>
#include <mutex>

#include "stream.h"

namespace aclnn_cpu {

// Whether a thread runs callbacks: streams may wait for it, so it must not wait for streams to have room.
bool runs_callbacks(uint64_t thread);

// Whether the calling thread is inside a host function: whatever waits is then refused with a code, else 0.
bool inside_host_function();
int refuse_to_wait(const char* function);

// Ends the subscription to a stream, if there is one; callbacks that were not run yet are dropped.
void end_subscription(Stream& stream);

// The lock of the mailboxes, for a fork to hold; and in its child: the threads that had them are gone.
std::mutex& mailboxes_lock();
void forget_mailboxes();

}  // namespace aclnn_cpu
