#include "sim/config/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "sim/base/named.h"
#include "sim/base/parse_quantity.h"

namespace ulysim::config {
namespace {

constexpr std::size_t kMostShown = 60;

std::string shown(std::string_view text) {
  return text.size() <= kMostShown ? std::string(text) : std::string(text.substr(0, kMostShown)) + "…";
}

std::string_view kind_name(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return node.quoted ? "quoted text" : "a word";
    case Node::Kind::sequence:
      return "a sequence";
    case Node::Kind::mapping:
      return "a mapping";
  }
  return "nothing";
}

/// How each type is called in messages and read from text. Units may stand in quotes, since JSON has no other way
/// to write them; numbers and booleans may not.
template <class T>
struct Type;

template <>
struct Type<std::string> {
  static constexpr std::string_view kName = "text";
  static constexpr bool kQuoted = true;
  static Parsed<std::string> parse(const std::string& text) {
    return Parsed<std::string>(std::in_place_index<0>, text);
  }
};

template <>
struct Type<bool> {
  static constexpr std::string_view kName = "true or false";
  static constexpr bool kQuoted = false;
  static Parsed<bool> parse(const std::string& text) {
    if (text == "true" || text == "false") {
      return text == "true";
    }
    return fmt::format("cannot read '{}' as true or false", shown(text));
  }
};

template <>
struct Type<std::int64_t> {
  static constexpr std::string_view kName = "a count (like 1048576 or 1Mi)";
  static constexpr bool kQuoted = false;
  static Parsed<std::int64_t> parse(const std::string& text) { return parse_count(text); }
};

template <>
struct Type<double> {
  static constexpr std::string_view kName = "a number (like 0.85)";
  static constexpr bool kQuoted = false;
  static Parsed<double> parse(const std::string& text) { return parse_number(text); }
};

template <>
struct Type<Bytes> {
  static constexpr std::string_view kName = "bytes (like 80GiB)";
  static constexpr bool kQuoted = true;
  static Parsed<Bytes> parse(const std::string& text) { return parse_bytes(text); }
};

template <>
struct Type<Bandwidth> {
  static constexpr std::string_view kName = "a bandwidth (like 450GB/s or 400Gb/s)";
  static constexpr bool kQuoted = true;
  static Parsed<Bandwidth> parse(const std::string& text) { return parse_bandwidth(text); }
};

template <>
struct Type<FlopRate> {
  static constexpr std::string_view kName = "a FLOP rate (like 989TFLOP/s)";
  static constexpr bool kQuoted = true;
  static Parsed<FlopRate> parse(const std::string& text) { return parse_flop_rate(text); }
};

template <>
struct Type<Duration> {
  static constexpr std::string_view kName = "a duration (like 1.2us)";
  static constexpr bool kQuoted = true;
  static Parsed<Duration> parse(const std::string& text) { return parse_duration(text); }
};

/// "'path': …", or the sentence alone for the document itself.
std::string about(std::string_view path, std::string_view message) {
  return path.empty() ? std::string(message) : fmt::format("'{}': {}", path, message);
}

}  // namespace

template <class T>
std::optional<T> read(const Node& node, std::string_view path, Diagnostics& diagnostics) {
  if (node.kind != Node::Kind::scalar || (node.quoted && !Type<T>::kQuoted)) {
    diagnostics.error(node.where, about(path, fmt::format("expected {}, found {}", Type<T>::kName, kind_name(node))));
    return std::nullopt;
  }
  auto parsed = Type<T>::parse(node.text);
  if (parsed.index() == 1) {
    diagnostics.error(node.where, about(path, std::get<1>(parsed)));
    return std::nullopt;
  }
  return std::get<0>(std::move(parsed));
}

Mapping::Mapping(const Node& node, std::string path, Diagnostics& diagnostics)
    : node_(&node), path_(std::move(path)), diagnostics_(&diagnostics) {
  if (node.kind == Node::Kind::scalar || node.kind == Node::Kind::sequence) {
    broken_ = true;
    diagnostics_->error(node.where, about(path_, fmt::format("expected a mapping, found {}", kind_name(node))));
  }
}

template <class T>
T Mapping::required(std::string_view key) {
  const Node* value = find(key);
  if (value == nullptr) {
    if (!broken_) {
      error_at_key(key, fmt::format("missing {} '{}'", node_->find(key) == nullptr ? "key" : "value of", path_of(key)));
    }
    return T{};
  }
  return read<T>(*value, path_of(key), *diagnostics_).value_or(T{});
}

template <class T>
T Mapping::optional(std::string_view key, T fallback) {
  return maybe<T>(key).value_or(std::move(fallback));
}

template <class T>
std::optional<T> Mapping::maybe(std::string_view key) {
  const Node* value = find(key);
  return value == nullptr ? std::nullopt : read<T>(*value, path_of(key), *diagnostics_);
}

std::size_t Mapping::choice(std::string_view key, std::span<const std::string> allowed, std::size_t fallback) {
  const auto text = maybe<std::string>(key);
  if (!text) {
    return fallback;
  }
  const auto found = std::find(allowed.begin(), allowed.end(), *text);
  if (found == allowed.end()) {
    error(key, fmt::format("unknown value '{}'{}", shown(*text), did_you_mean(*text, allowed)));
    return fallback;
  }
  return static_cast<std::size_t>(found - allowed.begin());
}

std::int64_t Mapping::integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high) {
  const auto value = maybe<std::int64_t>(key);
  if (!value) {
    return fallback;
  }
  if (*value < low || *value > high) {
    error(key, high == std::numeric_limits<std::int64_t>::max()
                   ? fmt::format("{} is below {}", *value, low)
                   : fmt::format("{} is outside {} to {}", *value, low, high));
    return fallback;
  }
  return *value;
}

const Node* Mapping::find(std::string_view key) {
  ignore(key);
  const Node* value = node_->find(key);
  return value == nullptr || value->kind == Node::Kind::null ? nullptr : value;
}

std::vector<const Node*> Mapping::items(std::string_view key) {
  std::vector<const Node*> list;
  const Node* value = find(key);
  if (value == nullptr) {
    return list;
  }
  if (value->kind != Node::Kind::sequence) {
    error(key, fmt::format("expected a sequence, found {}", kind_name(*value)));
  }
  for (const Node& item : value->items) {
    list.push_back(&item);
  }
  return list;
}

void Mapping::ignore(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) {
    asked_.emplace_back(key);
  }
}

void Mapping::finish() {
  for (const Entry& entry : node_->entries) {
    if (std::find(asked_.begin(), asked_.end(), entry.key) == asked_.end()) {
      diagnostics_->error(
          entry.where, fmt::format("unknown key '{}'{}", path_of(shown(entry.key)), did_you_mean(entry.key, asked_)));
    }
  }
}

void Mapping::error(const Node& at, std::string message) {
  diagnostics_->error(at.where, std::move(message));
}

void Mapping::error(std::string_view key, const std::string& message) {
  error_at_key(key, about(path_of(key), message));
}

void Mapping::error_at_key(std::string_view key, std::string message) {
  const auto entry =
      std::find_if(node_->entries.begin(), node_->entries.end(), [&](const Entry& e) { return e.key == key; });
  const bool present = entry != node_->entries.end();
  diagnostics_->error(!present ? node_->where : entry->value.where, std::move(message));
}

std::string Mapping::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

#define ULYSIM_READABLE(T)                                                        \
  template std::optional<T> read<T>(const Node&, std::string_view, Diagnostics&); \
  template T Mapping::required<T>(std::string_view);                              \
  template T Mapping::optional<T>(std::string_view, T);                           \
  template std::optional<T> Mapping::maybe<T>(std::string_view)

ULYSIM_READABLE(std::string);
ULYSIM_READABLE(bool);
ULYSIM_READABLE(std::int64_t);
ULYSIM_READABLE(double);
ULYSIM_READABLE(Bytes);
ULYSIM_READABLE(Bandwidth);
ULYSIM_READABLE(FlopRate);
ULYSIM_READABLE(Duration);

#undef ULYSIM_READABLE

}  // namespace ulysim::config
