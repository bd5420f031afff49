#include "errors.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <deque>

namespace aclnn_cpu {
namespace {

constexpr size_t kMostRemembered = 16;

struct Messages {
  std::deque<std::string> newest_first;
  std::string handed_out;
};

// A thread's messages end with the thread. Destructors of static objects run after that and may still fail: the newest
// sentence then stands in plain bytes, which nobody destroys.
thread_local Messages* messages = nullptr;
thread_local bool thread_is_ending = false;
thread_local bool sentence_was_lost = false;
thread_local char last_words[512] = "";

constexpr char kLost[] = "out of memory; so much that the sentence about it is lost.";

struct Reaper {
  ~Reaper() {
    delete messages;
    messages = nullptr;
    thread_is_ending = true;
  }
};

Messages* messages_of_this_thread() {
  if (messages == nullptr && !thread_is_ending) {
    static thread_local Reaper reaper;
    (void)reaper;
    messages = new Messages;
  }
  return messages;
}

// Reading clears, here as before.
const char* read_last_words() {
  static thread_local char handed_out[sizeof last_words];
  std::memcpy(handed_out, sentence_was_lost ? kLost : last_words, sentence_was_lost ? sizeof kLost : sizeof last_words);
  last_words[0] = '\0';
  sentence_was_lost = false;
  return handed_out;
}

}  // namespace

int fail(int code, const std::string& sentence) noexcept {
  try {
    if (sentence.empty()) throw std::bad_alloc();  // there was no memory for it
    if (Messages* mine = messages_of_this_thread()) {
      mine->newest_first.push_front(sentence);
      if (mine->newest_first.size() > kMostRemembered) mine->newest_first.pop_back();
    } else {
      std::snprintf(last_words, sizeof last_words, "%s", sentence.c_str());
    }
  } catch (const std::exception&) {
    sentence_was_lost = true;
  }
  return code;
}

int fail(const Outcome& outcome) noexcept { return outcome.ok() ? 0 : fail(outcome.code, outcome.sentence); }

int fail_no_memory(const char* function) noexcept {
  try {
    return fail(ACL_ERROR_BAD_ALLOC, std::string(function) + ": out of memory.");
  } catch (const std::exception&) {
    sentence_was_lost = true;
    return ACL_ERROR_BAD_ALLOC;
  }
}

int fail_with(const char* function, const char* words) noexcept {
  try {
    return fail(ACL_ERROR_INTERNAL_ERROR, std::string(function) + ": " + words + ".");
  } catch (const std::exception&) {
    sentence_was_lost = true;
    return ACL_ERROR_INTERNAL_ERROR;
  }
}

Outcome is_null(const char* function, const char* argument, int code) {
  return {code, std::string(function) + ": " + argument + " is null; it must be given."};
}

int fail_null(const char* function, const char* argument, int code) { return fail(is_null(function, argument, code)); }

Outcome is_not_live(const char* function, const std::string& argument, const char* type, const void* pointer, int code) {
  return {code, std::string(function) + ": " + argument + " is " + text_of(pointer) + ", which is no live " + type +
                    "; it was destroyed or never created."};
}

int fail_not_live(const char* function, const std::string& argument, const char* type, const void* pointer, int code) {
  return fail(is_not_live(function, argument, type, pointer, code));
}

void say(const std::string& sentence) {
  const std::string line = "aclnn: " + sentence + "\n";
  const char* rest = line.data();
  size_t left = line.size();
  while (left > 0) {
    const ssize_t written = write(2, rest, left);
    if (written <= 0) return;  // nobody listens
    rest += written;
    left -= static_cast<size_t>(written);
  }
}

std::string text_of(unsigned long long number) { return std::to_string(number); }

std::string text_of(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, reinterpret_cast<uintptr_t>(address));
  return text;
}

}  // namespace aclnn_cpu

using namespace aclnn_cpu;

extern "C" const char* aclGetRecentErrMsg() {
  try {
    Messages* mine = messages_of_this_thread();
    if (mine == nullptr) return read_last_words();
    std::string all = sentence_was_lost ? kLost : "";
    for (const std::string& sentence : mine->newest_first) all += (all.empty() ? "" : "\n") + sentence;
    mine->handed_out.swap(all);
    mine->newest_first.clear();
    sentence_was_lost = false;
    return mine->handed_out.c_str();
  } catch (const std::exception&) {
    return kLost;
  }
}
