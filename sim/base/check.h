#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace ulysim {

/// Our bug: an invariant of the program itself is broken. Only `tools/` catches it (exit 70).
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The world failed (disk full, cannot write). Only `tools/` catches it (exit 1).
class WorldError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A figure leaves the range that the simulator can hold, because of what the user asked for
/// (a link of 1 B/s, a step of a million days). The sentence names the link or the kernel. Exit 2.
class RangeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& message);

}  // namespace ulysim

/// Always on, also in release: a broken invariant ends with a sentence, never with a wrong number.
#define ULYSIM_CHECK(condition, ...)                                                    \
  do {                                                                                  \
    if (!(condition)) [[unlikely]] {                                                    \
      ::ulysim::fail_check(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                   \
  } while (false)
