// How far two cores lie apart: the time of a line of cache from one to the other and back.

#include <atomic>
#include <chrono>
#include <pthread.h>
#include <sched.h>
#include <thread>

namespace {

constexpr long UNTIMED = 100;  // rounds, in which both threads start

alignas(128) std::atomic<long> ball;

bool stay_on(int core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    return pthread_setaffinity_np(pthread_self(), sizeof only, &only) == 0;
}

void wait_for(long value) {
    while (ball.load(std::memory_order_acquire) != value) {
    }
}

}  // namespace

// Nanoseconds of a round trip between two cores; below 0 if this process may not use them.
extern "C" double round_trip(int one, int other, long rounds) {
    std::atomic<int> pinned{0};
    double nanoseconds = -1;
    ball = 0;
    auto begin = [&](int core) {
        pinned += stay_on(core) ? 1 : 16;
        while (pinned < 2) {
        }
        return pinned == 2;
    };
    std::thread there([&] {
        if (begin(other)) {
            for (long i = 0; i < UNTIMED + rounds; i++) {
                wait_for(2 * i + 1);
                ball.store(2 * i + 2, std::memory_order_release);
            }
        }
    });
    std::thread here([&] {
        if (begin(one)) {
            auto begun = std::chrono::steady_clock::now();
            for (long i = 0; i < UNTIMED + rounds; i++) {
                if (i == UNTIMED) begun = std::chrono::steady_clock::now();
                ball.store(2 * i + 1, std::memory_order_release);
                wait_for(2 * i + 2);
            }
            std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begun;
            nanoseconds = taken.count() / rounds;
        }
    });
    here.join();
    there.join();
    return nanoseconds;
}
