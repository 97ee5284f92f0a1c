#include "sim/workload/hf_reader.h"

#include <fmt/format.h>

#include <utility>

namespace ulysim::workload::hf {

Reader::Reader(const config::Node& text, const config::Node& root, std::string path, Diagnostics& diagnostics)
    : text_(&text), root_(&root), map_(text, std::move(path), diagnostics), at_begin_(diagnostics.list().size()) {}

Size Reader::size(Names names, std::int64_t most, Size fallback) {
  Size value = fallback;
  std::string_view first{};
  for (const std::string_view name : names) {
    if (map_.find(name) == nullptr) {
      continue;
    }
    const Size here = integer(name, 1, most);
    if (!first.empty() && here.has_value() && value.has_value() && *here != *value) {
      map_.error(name,
                 fmt::format("'{}' is {} but '{}' is {}", map_.path_of(name), *here, map_.path_of(first), *value));
    }
    if (first.empty()) {
      first = name;
      value = here;
    }
  }
  return value;
}

Size Reader::required(Names names, std::int64_t most, Size fallback) {
  const std::size_t before = errors();
  const Size value = size(names, most, fallback);
  if (!value.has_value() && errors() == before) {
    map_.error(*names.begin(), fmt::format("'{}' is missing", map_.path_of(*names.begin())));
  }
  return value;
}

Size Reader::nullable(std::string_view name, std::int64_t most, Size fallback) {
  const config::Node* node = text_->find(name);
  if (node == nullptr) {
    return fallback;
  }
  return node->kind == config::Node::Kind::null ? Size{} : integer(name, 1, most);
}

Size Reader::integer(std::string_view name, std::int64_t low, std::int64_t most) {
  const std::size_t before = errors();
  const std::int64_t value = map_.integer(name, low, low, most);
  return errors() == before ? Size{value} : Size{};
}

std::vector<std::int64_t> Reader::integers(std::string_view name, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (const config::Node* item : map_.items(name)) {
    const std::string path = fmt::format("{}[{}]", map_.path_of(name), values.size());
    const std::int64_t value = config::read<std::int64_t>(*item, path, map_.diagnostics()).value_or(0);
    if (value < 0 || value > most) {
      map_.error(*item, fmt::format("'{}' is {}; it must lie between 0 and {}", path, value, most));
    }
    values.push_back(value);
  }
  return values;
}

void Reader::check_length(std::string_view name, std::size_t length, std::int64_t layers) {
  if (length != static_cast<std::size_t>(layers)) {
    map_.error(name, fmt::format("'{}' has {} items for {} layers", map_.path_of(name), length, layers));
  }
}

}  // namespace ulysim::workload::hf
