#include "other_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace aclnn_cpu {
namespace {

constexpr int kMemory = 3;  // the file of the shared memory, there; the connection is its standard input

// Leaves its first process at once, so that programs that wait for their children never meet it.
const char kProgram[] = R"(
import os
if os.fork():
    os._exit(0)
try:
    from aclnn.capi.remote import serve
except BaseException as error:
    import struct
    text = f"the engine cannot be loaded there: {error}.".encode()
    os.write(0, struct.pack("=2q", 561000, len(text)) + text)
    os._exit(1)
serve()
)";

bool send_all(int to, const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(to, next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int from, void* data, size_t size) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t count = recv(from, next, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// In a process group of its own: an interrupt from the terminal is for the program.
bool spawn(const std::string& executable, int connection, int memory) {
  std::string words[] = {executable, "-E", "-s", "-c", kProgram};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, memory, kMemory);
  posix_spawn_file_actions_adddup2(&actions, connection, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int failed = posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

Outcome OtherProcess::start(const Environment& environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return {ACLNN_ERR_INNER, "the system has no connection left for another process."};
  }
  connection_ = ends[0];
  file_ = memfd_create("aclnn", MFD_CLOEXEC);
  // Not below what it is given as: dup2 would have closed one before it was its turn.
  const int there = fcntl(ends[1], F_DUPFD_CLOEXEC, kMemory + 1);
  const int memory = fcntl(file_, F_DUPFD_CLOEXEC, kMemory + 1);
  const bool started = there >= 0 && memory >= 0 && spawn(environment.executable, there, memory);
  for (const int end : {ends[1], there, memory}) close(end);
  if (!started) return {ACLNN_ERR_INNER, environment.executable + " cannot be started."};
  return {};
}

Outcome OtherProcess::gone() {
  shutdown(connection_, SHUT_RDWR);
  return {ACLNN_ERR_INNER, "the process that computes for this one has ended; operators are no longer taken."};
}

Outcome OtherProcess::ask(Request request, int64_t subject, Words words, std::vector<int64_t>* answer) {
  const int64_t head[] = {static_cast<int64_t>(request), subject, static_cast<int64_t>(size_),
                          static_cast<int64_t>(words.count)};
  int64_t reply[2];  // code, then how many words or bytes of a sentence follow
  if (!send_all(connection_, head, sizeof head) || !send_all(connection_, words.data, words.count * sizeof(int64_t)) ||
      !receive_all(connection_, reply, sizeof reply)) {
    return gone();
  }
  if (reply[0] == 0) {
    answer->resize(static_cast<size_t>(reply[1]));
    return receive_all(connection_, answer->data(), answer->size() * sizeof(int64_t)) ? Outcome{} : gone();
  }
  std::string sentence(static_cast<size_t>(reply[1]), '\0');
  if (!receive_all(connection_, sentence.data(), sentence.size())) return gone();
  return {static_cast<int>(reply[0]), sentence};
}

char* OtherProcess::shared(size_t size) {
  if (size <= size_) return memory_;
  const size_t larger = (size + size / 4 + 0xFFFF) & ~size_t{0xFFFF};
  if (ftruncate(file_, static_cast<off_t>(larger)) != 0) return nullptr;
  void* mapped = mmap(nullptr, larger, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (memory_ != nullptr) munmap(memory_, size_);
  memory_ = static_cast<char*>(mapped);
  size_ = larger;
  return memory_;
}

}  // namespace aclnn_cpu
