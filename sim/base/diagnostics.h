#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ulysim {

/// Where a piece of input stands. Lines and columns count from 1; 0 means "the file as a whole".
struct Location {
  std::string file{};
  int line{};
  int column{};
};

struct Diagnostic {
  Location where{};
  std::string message{};
};

/// `file:line:column: error: message`, or `file: error: message` without a line.
[[nodiscard]] std::string to_string(const Diagnostic& diagnostic);

/// The user's input is wrong: every mistake found, in order of place. Exit 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Diagnostic> diagnostics);
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// Collects mistakes so that all are reported at once; a stage ends with `throw_if_any()`.
class Diagnostics {
 public:
  void error(Location where, std::string message) {
    // A broken file may hold a mistake a line; past this many nobody reads on.
    if (list_.size() < kMost) {
      list_.push_back({std::move(where), std::move(message)});
    }
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] const std::vector<Diagnostic>& list() const { return list_; }
  /// Throws InputError with everything collected, if anything was.
  void throw_if_any() const;

 private:
  static constexpr std::size_t kMost = 100;
  std::vector<Diagnostic> list_;
};

}  // namespace ulysim
