#include "calibration/suite/probe_text.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "sim/base/parse_quantity.h"

namespace ulysim::calibration {
namespace {

using Direction = kernel::Direction;

constexpr std::array<std::pair<Collective, std::string_view>, 4> kCollectives{{
    {Collective::all_to_all, "all-to-all"},
    {Collective::all_gather, "all-gather"},
    {Collective::reduce_scatter, "reduce-scatter"},
    {Collective::send_recv, "send-recv"},
}};

std::string_view name(Mask mask) {
  return mask == Mask::causal ? "causal" : "full";
}

/// Takes `name=value` parts off the front of a shape, in order.
class ShapeReader {
 public:
  explicit ShapeReader(std::string_view text) : rest_(text) {}

  std::int64_t count(std::string_view key) {
    const auto parsed = parse_count(value(key));
    const auto* number = std::get_if<std::int64_t>(&parsed);
    good_ = good_ && number != nullptr && *number > 0;
    return number != nullptr ? *number : 0;
  }
  Mask mask() {
    const std::string_view text = value("mask");
    good_ = good_ && (text == "causal" || text == "full");
    return text == "causal" ? Mask::causal : Mask::full;
  }
  [[nodiscard]] bool done() const { return good_ && rest_.empty(); }

 private:
  std::string_view value(std::string_view key) {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (!part.starts_with(key) || part.size() <= key.size() || part[key.size()] != '=') {
      good_ = false;
      return {};
    }
    return part.substr(key.size() + 1);
  }

  std::string_view rest_;
  bool good_{true};
};

struct Kind {
  std::string operator()(const GemmProbe&) const { return "gemm"; }
  std::string operator()(const AttentionProbe& p) const {
    return p.direction == Direction::forward ? "attention-forward" : "attention-backward";
  }
  std::string operator()(const CopyProbe&) const { return "copy"; }
  std::string operator()(const CollectiveProbe& p) const {
    for (const auto& [collective, text] : kCollectives) {
      if (collective == p.collective) {
        return std::string(text);
      }
    }
    return {};
  }
  std::string operator()(const LayerProbe& p) const {
    return p.scheme == Scheme::ulysses ? "ulysses-layer" : "ring-layer";
  }
};

struct Shape {
  std::string operator()(const GemmProbe& p) const { return fmt::format("m={} n={} k={}", p.m, p.n, p.k); }
  std::string operator()(const AttentionProbe& p) const { return of_heads(p); }
  std::string operator()(const CopyProbe& p) const { return fmt::format("bytes={}", p.bytes); }
  std::string operator()(const CollectiveProbe& p) const { return fmt::format("bytes={}", p.bytes); }
  std::string operator()(const LayerProbe& p) const { return of_heads(p); }

  template <class WithHeads>
  static std::string of_heads(const WithHeads& p) {
    return fmt::format("mask={} tokens={} heads={} kv_heads={} head_dim={}", name(p.mask), p.tokens, p.heads,
                       p.kv_heads, p.head_dim);
  }
};

template <class WithHeads>
void read_heads(ShapeReader& reader, WithHeads& probe) {
  probe.mask = reader.mask();
  probe.tokens = reader.count("tokens");
  probe.heads = reader.count("heads");
  probe.kv_heads = reader.count("kv_heads");
  probe.head_dim = reader.count("head_dim");
}

std::optional<Probe> read(std::string_view kind, ShapeReader& reader) {
  if (kind == "gemm") {
    GemmProbe probe{.m = reader.count("m")};
    probe.n = reader.count("n");
    probe.k = reader.count("k");
    return probe;
  }
  if (kind == "copy") {
    return CopyProbe{.bytes = reader.count("bytes")};
  }
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    if (AttentionProbe probe{.direction = direction}; kind == Kind()(probe)) {
      read_heads(reader, probe);
      return probe;
    }
  }
  for (const Scheme scheme : {Scheme::ulysses, Scheme::ring}) {
    if (LayerProbe probe{.scheme = scheme}; kind == Kind()(probe)) {
      read_heads(reader, probe);
      return probe;
    }
  }
  for (const auto& [collective, text] : kCollectives) {
    if (kind == text) {
      return CollectiveProbe{.collective = collective, .bytes = reader.count("bytes")};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string kind_of(const Probe& probe) {
  return std::visit(Kind(), probe);
}

std::string shape_of(const Probe& probe) {
  return std::visit(Shape(), probe);
}

std::optional<Probe> probe_of(std::string_view kind, std::string_view shape) {
  ShapeReader reader(shape);
  const std::optional<Probe> probe = read(kind, reader);
  return reader.done() ? probe : std::nullopt;
}

}  // namespace ulysim::calibration
