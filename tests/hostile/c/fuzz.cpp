// `fuzz FIRST COUNT STEPS THREADS SECONDS`: random histories of the C interface, one per seed and thread. SIGTERM ends it
// after the seed it is at, as the end of its time does.
//
// What must hold: nothing crashes or hangs; an answer other than 0 leaves a sentence and the memory as it was; 0 means
// that the outputs are whole and right and that nothing else was written; in the end nothing is alive.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "call.h"
#include "shared.h"

extern "C" size_t aclnn_cpu_live_objects(void);

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t is_over = 0;
std::atomic<long> calls{0}, computed{0}, refused{0}, others{0};

Shared shared;

class History {
 public:
  // The default stream answers whoever asks first: only one thread uses it.
  History(uint64_t seed, uint64_t thread) : seed_(seed), draw_(seed * 1000 + thread), has_default_(thread == 0) {}

  void go(long steps) {
    if (draw_.one_in(2)) aclrtSetDevice(static_cast<int32_t>(draw_.between(0, 1)));
    for (step_ = 0; step_ < steps; ++step_) one_step();
    finish_pending();
    for (aclrtStream stream : streams_) answered(aclrtDestroyStream(stream));
    for (const auto& [kind, handle] : mine_) destroy(kind, handle);
  }

 private:
  void one_step() {
    const int64_t chance = draw_.below(100);
    if (chance < 60) call();
    else if (chance < 75) make_or_destroy_object();
    else if (chance < 82) use_streams();
    else if (chance < 85) use_newer_names();
    else if (chance < 93) use_memory();
    else ask();
    if (pending_.size() > 3) finish_pending();
  }

  [[noreturn]] void found(const std::string& what) {
    std::printf("seed %llu step %ld: %s\n  %s\n", static_cast<unsigned long long>(seed_), step_, what.c_str(),
                aclGetRecentErrMsg());
    std::fflush(stdout);
    std::abort();
  }

  // Every answer but 0 comes with a sentence.
  int answered(int code, const char* who = "a function") {
    const std::string sentence = aclGetRecentErrMsg();
    if (sentence.find(" failed with ") != std::string::npos) found(sentence);  // a fault inside is none of the caller's
    if (code != 0 && sentence.empty()) found(std::string(who) + " answered " + std::to_string(code) + " without a sentence");
    ++others;
    return code;
  }

  const void* handle() {
    auto some = shared.some();
    return draw_.pick(some);
  }
  template <class Object>
  Object* any() {
    return static_cast<Object*>(const_cast<void*>(handle()));
  }
  aclrtStream stream() {
    if (has_default_ && (streams_.empty() || draw_.one_in(4))) return nullptr;
    if (streams_.empty()) make_stream();
    return draw_.pick(streams_);
  }

  void make_stream() {
    aclrtStream made = nullptr;
    if (answered(aclrtCreateStream(&made)) != 0) found("no stream can be made");
    streams_.push_back(made);
  }

  void call() {
    ++calls;
    Call made = valid_call(draw_);
    const auto handles = shared.some();
    const int64_t changes = draw_.one_in(2) ? 0 : draw_.between(1, 3);
    for (int64_t i = 0; i < changes; ++i) change(made, draw_, handles);
    made.remember();
    made.create();
    const int code = answered(made.plan(), made.op->name);
    if (code != 0 && !made.changed) found(std::string(made.op->name) + " refuses a valid call");
    if (code != 0) return refuse(made);
    if (draw_.one_in(6)) misuse(made);
    if (draw_.one_in(12)) return never_run(made);
    if (draw_.one_in(4)) made.destroy();  // the executor knows all it needs
    draw_.one_in(5) ? run_often(made) : run_once(made);
  }

  void refuse(Call& made) {
    ++refused;
    if (!made.untouched()) found(std::string(made.op->name) + " refused and wrote");
    made.destroy();
  }

  // A phase 2 that must be refused.
  void refused_run(const char* what, const Operator* op, void* workspace, uint64_t size, aclOpExecutor* executor) {
    if (answered(op->run(workspace, size, executor, nullptr), op->name) == 0) found(std::string("accepted: ") + what);
  }

  // Wrong phases 2: each is refused, and the executor stays as it is.
  void misuse(Call& made) {
    const Call other = valid_call(draw_);
    const uint64_t needed = made.workspace_size;
    if (other.op != made.op) refused_run("the phase 2 of another operator", other.op, nullptr, 0, made.executor);
    if (needed > 0) refused_run("a null workspace", made.op, nullptr, needed + 64, made.executor);
    if (needed > 0) refused_run("a workspace too small", made.op, &made, needed - 1, made.executor);
    refused_run("a workspace that no memory can hold", made.op, &made, UINT64_MAX, made.executor);
    refused_run("a wrong executor", made.op, nullptr, 0, any<aclOpExecutor>());
    if (!made.untouched()) found("a refused phase 2 wrote");
  }

  void never_run(Call& made) {
    answered(aclDestroyAclOpExecutor(made.executor));
    if (answered(made.run(stream())) == 0) found("a destroyed executor ran");
    answered(aclDestroyAclOpExecutor(made.executor));
    if (!made.untouched()) found("a destroyed executor wrote");
    made.destroy();
  }

  void run_once(Call& made) {
    const int code = answered(made.run(stream()), made.op->name);
    if (code != 0) answered(aclDestroyAclOpExecutor(made.executor));
    if (code != 0) return refuse(made);
    if (draw_.one_in(8)) refused_run("a second run", made.op, nullptr, 0, made.executor);
    shared.leave(made.executor);
    pending_.push_back(std::make_unique<Call>(std::move(made)));
    if (draw_.one_in(2)) finish_pending();
  }

  void run_often(Call& made) {
    answered(aclSetAclOpExecutorRepeatable(made.executor));
    const bool updates = made.args[0].is_output;  // in place: every run gives something else
    for (int64_t times = updates ? 1 : draw_.between(1, 3); times > 0; --times) {
      const size_t index = static_cast<size_t>(draw_.odd_number());
      if (draw_.one_in(3)) answered(aclSetTensorAddr(made.executor, index, any<aclTensor>(), nullptr));
      if (answered(made.run(stream()), made.op->name) != 0 || !synchronized()) {
        answered(aclDestroyAclOpExecutor(made.executor));
        return refuse(made);
      }
    }
    answered(aclDestroyAclOpExecutor(made.executor));
    pending_.push_back(std::make_unique<Call>(std::move(made)));
    finish_pending();
  }

  bool synchronized() {
    bool fine = !has_default_ || answered(aclrtSynchronizeStream(nullptr)) == 0;
    for (aclrtStream one : streams_) fine &= answered(aclrtSynchronizeStream(one)) == 0;
    return fine;
  }

  // After all streams are done every call is whole, or untouched and one of them was reported.
  void finish_pending() {
    const bool reported = !synchronized();
    for (auto& done : pending_) {
      const std::string fault = done->outcome();
      if (!fault.empty() && !(reported && done->untouched())) found(std::string(done->op->name) + ": " + fault);
      done->destroy();
      ++computed;
    }
    pending_.clear();
  }

  void make_or_destroy_object() {
    if (!mine_.empty() && draw_.one_in(2)) {
      const size_t at = static_cast<size_t>(draw_.below(static_cast<int64_t>(mine_.size())));
      destroy(mine_[at].first, mine_[at].second);
      mine_.erase(mine_.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    if (draw_.one_in(4)) return destroy_anything();
    const Kind kind = draw_.pick({Kind::tensor, Kind::list, Kind::scalar, Kind::ints, Kind::flags});
    const void* made = create(kind);
    if (made == nullptr) return;
    mine_.emplace_back(kind, made);
    shared.leave(made);
  }

  const void* create(Kind kind) {
    const std::vector<int64_t> numbers(static_cast<size_t>(draw_.between(0, 40)), draw_.odd_number());
    const int64_t* given = draw_.one_in(8) ? nullptr : numbers.data();
    const auto type = static_cast<aclDataType>(draw_.between(-2, 42));
    const auto format = static_cast<aclFormat>(draw_.between(-2, 55));
    const uint64_t count = numbers.size();
    const aclTensor* members[] = {any<aclTensor>(), any<aclTensor>()};
    switch (kind) {
      case Kind::tensor:
        return aclCreateTensor(given, count, type, given, draw_.odd_number(), format, given, count, nullptr);
      case Kind::list: return aclCreateTensorList(draw_.one_in(8) ? nullptr : members, 2);
      case Kind::scalar: return aclCreateScalar(draw_.one_in(8) ? nullptr : static_cast<void*>(&bytes_), type);
      case Kind::ints: return aclCreateIntArray(given, count);
      default: return aclCreateBoolArray(reinterpret_cast<const bool*>(given), count);
    }
  }

  // With a handle of any kind, dead or alive, of this thread or another.
  void destroy_anything() {
    switch (draw_.below(6)) {
      case 0: answered(aclDestroyTensor(any<aclTensor>())); break;
      case 1: answered(aclDestroyTensorList(any<aclTensorList>())); break;
      case 2: answered(aclDestroyScalar(any<aclScalar>())); break;
      case 3: answered(aclDestroyIntArray(any<aclIntArray>())); break;
      case 4: answered(aclDestroyBoolArray(any<aclBoolArray>())); break;
      default: answered(aclDestroyFloatArray(any<aclFloatArray>()));
    }
  }

  void destroy(Kind kind, const void* handle) {
    Arg arg(kind);
    arg.handle = handle;
    arg.destroy();
  }

  void use_streams() {
    aclrtEvent event = nullptr;
    switch (draw_.below(6)) {
      case 0:
      case 1:
        if (streams_.size() < 3) make_stream();
        break;
      case 2: destroy_stream(); break;
      case 3:
        answered(aclrtCreateEvent(&event));
        answered(aclrtRecordEvent(event, stream()));
        answered(aclrtStreamWaitEvent(stream(), event));
        if (draw_.one_in(2)) answered(aclrtSynchronizeEvent(event));
        answered(aclrtDestroyEvent(event));
        break;
      case 4: answered(aclrtSynchronizeStreamWithTimeout(stream(), static_cast<int32_t>(draw_.odd_number()))); break;
      default: {
        aclrtStreamStatus status;
        answered(aclrtStreamQuery(any<void>(), draw_.one_in(3) ? nullptr : &status));
      }
    }
  }

  // Events by their later names, functions that streams run, and what is only a name.
  void use_newer_names() {
    aclrtEvent event = nullptr;
    aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
    aclCANNPackageVersion version;
    switch (draw_.below(6)) {
      case 0:
        answered(aclrtCreateEventExWithFlag(&event, static_cast<uint32_t>(draw_.odd_number())));
        answered(aclrtRecordEvent(event, stream()));
        if (answered(aclrtQueryEvent(event, &status)) != 0 || status > 1) found("a recorded event has no status");
        answered(aclrtDestroyEvent(event));
        answered(aclrtQueryEvent(event, &status));
        break;
      case 1: answered(aclrtQueryEvent(any<void>(), draw_.one_in(3) ? nullptr : &status)); break;
      case 2: host_functions(); break;
      case 3: answered(aclrtResetDeviceForce(static_cast<int32_t>(draw_.between(2, 9)))); break;
      case 4: answered(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(draw_.between(-2, 9)), &version)); break;
      default:
        if (answered(aclrtMemcpy2d(any<void>(), draw_.odd_number())) != 207000) found("a stub has a meaning");
    }
  }

  static void count_up(void* counter) {
    if (aclrtSynchronizeDevice() == 0 || *aclGetRecentErrMsg() == '\0') std::abort();
    ++*static_cast<int*>(counter);
  }

  // They run in their order among other work; one on a dead stream never does.
  void host_functions() {
    int counter = 0;
    const int64_t launches = draw_.between(1, 5);
    aclrtStream one = stream();
    for (int64_t i = 0; i < launches; ++i) {
      if (answered(aclrtLaunchHostFunc(one, count_up, &counter)) != 0) found("a stream takes no host function");
    }
    answered(aclrtLaunchHostFunc(any<void>(), nullptr, &counter));
    finish_pending();
    if (counter != launches) found("host functions were lost");
  }

  // With whatever is still queued on it: that is done first.
  void destroy_stream() {
    if (streams_.empty()) return;
    aclrtStream last = streams_.back();
    streams_.pop_back();
    const bool by_force = draw_.one_in(2);
    const bool reported = answered(by_force ? aclrtDestroyStreamForce(last) : aclrtDestroyStream(last)) != 0;
    answered(aclrtDestroyStreamForce(last));
    shared.leave(last);
    if (!reported) finish_pending();
    else pending_failed();
  }

  void pending_failed() {
    for (auto& done : pending_) {
      if (!done->outcome().empty() && !done->untouched()) found("a failed call wrote half of its outputs");
      done->destroy();
    }
    pending_.clear();
  }

  void use_memory() {
    void* memory = nullptr;
    const size_t size = static_cast<size_t>(draw_.one_in(4) ? draw_.odd_number() : draw_.between(1, 4096));
    if (allocated(&memory, size) != 0) return;
    const size_t most = size < 4096 ? size : 4096;
    answered(aclrtMemsetAsync(memory, most, 7, most, stream()));
    answered(aclrtMemcpyAsync(memory, most, bytes_, sizeof bytes_, ACL_MEMCPY_HOST_TO_DEVICE, stream()));
    answered(aclrtMemcpy(nullptr, most, memory, most, static_cast<aclrtMemcpyKind>(draw_.odd_number())));
    free_twice(memory);
    if (answered(aclrtFree(const_cast<void*>(handle()))) == 0) found("what is no memory was freed");
  }

  int allocated(void** memory, size_t size) {
    std::lock_guard<std::mutex> hold(shared.memory);
    return answered(aclrtMalloc(memory, size, ACL_MEM_MALLOC_NORMAL_ONLY));
  }

  // What is alive is freed, what is not is refused. Nobody else may get the address in between.
  void free_twice(void* memory) {
    std::lock_guard<std::mutex> hold(shared.memory);
    if (answered(aclrtFree(memory)) != 0) found("memory that is alive was not freed");
    if (answered(aclrtFree(memory)) == 0) found("memory was freed twice");
  }

  // Getters, with and without a place for the answer.
  void ask() {
    int64_t *values = nullptr, offset = 0;
    uint64_t count = 0;
    int64_t** const place = draw_.one_in(4) ? nullptr : &values;
    if (answered(aclGetViewShape(any<aclTensor>(), place, &count)) == 0) delete[] values;
    if (answered(aclGetViewStrides(any<aclTensor>(), place, &count)) == 0) delete[] values;
    answered(aclGetViewOffset(any<aclTensor>(), draw_.one_in(4) ? nullptr : &offset));
    answered(aclGetTensorListSize(any<aclTensorList>(), draw_.one_in(4) ? nullptr : &count));
    answered(aclGetIntArraySize(any<aclIntArray>(), draw_.one_in(4) ? nullptr : &count));
    answered(aclSetInputTensorAddr(any<aclOpExecutor>(), 0, any<aclTensor>(), nullptr));
    finish_pending();  // the default stream is that of the device
    answered(aclrtSetDevice(static_cast<int32_t>(draw_.between(-1, 2))));
  }

  const uint64_t seed_;
  Draw draw_;
  const bool has_default_;
  long step_ = 0;
  std::vector<aclrtStream> streams_;
  std::vector<std::unique_ptr<Call>> pending_;
  std::vector<std::pair<Kind, const void*>> mine_;
  unsigned char bytes_[16] = {0, 0, 128, 63};
};

void one_seed(uint64_t seed, long steps, uint64_t threads) {
  std::vector<std::thread> started;
  for (uint64_t i = 0; i < threads; ++i) started.emplace_back([=] { History(seed, i).go(steps); });
  for (std::thread& thread : started) thread.join();
  if (aclnn_cpu_live_objects() == 0) return;
  std::printf("seed %llu: %zu objects are left\n", static_cast<unsigned long long>(seed), aclnn_cpu_live_objects());
  std::exit(1);
}

}  // namespace

int main(int, char** arguments) {
  const uint64_t first = std::strtoull(arguments[1], nullptr, 10), count = std::strtoull(arguments[2], nullptr, 10);
  const long steps = std::atol(arguments[3]);
  const uint64_t threads = std::strtoull(arguments[4], nullptr, 10);
  const auto began = Clock::now(), end = began + std::chrono::seconds(std::atol(arguments[5]));
  std::signal(SIGTERM, [](int) { is_over = 1; });
  uint64_t seed = first;
  for (; seed < first + count && Clock::now() < end && is_over == 0; ++seed) one_seed(seed, steps, threads);
  const long took = (Clock::now() - began) / std::chrono::seconds(1), worked = std::clock() / CLOCKS_PER_SEC;
  std::printf("seeds %lu to %lu: %ld operator calls, %ld computed, %ld refused, %ld other answers, %ld seconds, "
              "%ld seconds of processor, nothing found\n",
              first, seed - 1, calls.load(), computed.load(), refused.load(), others.load(), took, worked);
}
