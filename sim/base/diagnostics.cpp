#include "sim/base/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace ulysim {
namespace {

/// Files keep the order in which they were first blamed; inside a file mistakes stand in order of place.
std::vector<Diagnostic> in_order_of_place(std::vector<Diagnostic> list) {
  std::map<std::string, std::size_t> file_order;
  for (const Diagnostic& diagnostic : list) {
    file_order.emplace(diagnostic.where.file, file_order.size());
  }
  const auto place = [&](const Diagnostic& diagnostic) {
    return std::tuple(file_order.at(diagnostic.where.file), diagnostic.where.line, diagnostic.where.column);
  };
  std::stable_sort(list.begin(), list.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
  return list;
}

std::string joined(const std::vector<Diagnostic>& list) {
  std::string text;
  for (const Diagnostic& diagnostic : in_order_of_place(list)) {
    text += (text.empty() ? "" : "\n") + to_string(diagnostic);
  }
  return text;
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  const Location& where = diagnostic.where;
  if (where.file.empty()) {
    return fmt::format("error: {}", diagnostic.message);
  }
  if (where.line <= 0) {
    return fmt::format("{}: error: {}", where.file, diagnostic.message);
  }
  return fmt::format("{}:{}:{}: error: {}", where.file, where.line, where.column, diagnostic.message);
}

InputError::InputError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(joined(diagnostics)), diagnostics_(in_order_of_place(std::move(diagnostics))) {}

void Diagnostics::throw_if_any() const {
  if (!list_.empty()) {
    throw InputError(list_);
  }
}

}  // namespace ulysim
