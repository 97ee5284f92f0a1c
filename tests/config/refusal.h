#pragma once

#include <string>

#include "sim/base/diagnostics.h"

namespace ulysim::config {

/// Everything that an InputError says, or "accepted".
template <class F>
std::string refusal(F&& parse) {
  try {
    static_cast<void>(parse());
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

/// `text` repeated `count` times.
inline std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

}  // namespace ulysim::config
