#include "tools/interrupt.h"

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace ulysim::tools {
namespace {

sigset_t stopping_signals() {
  sigset_t set{};
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

constexpr timespec kGlance{.tv_sec = 0, .tv_nsec = 20'000'000};

}  // namespace

Interrupt::Interrupt() {
  const sigset_t signals = stopping_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::jthread([this, signals](const std::stop_token& over) {
    while (!over.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &kGlance) > 0) {
        asked_.request_stop();
        pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // the next one ends the program
        return;
      }
    }
  });
}

Interrupt::~Interrupt() {
  watcher_.request_stop();
  watcher_.join();
  const sigset_t signals = stopping_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace ulysim::tools
