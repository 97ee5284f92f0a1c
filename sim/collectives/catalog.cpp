// The family of collective algorithms, in order of preference. To add one: a .cpp ending in a factory, declared and
// listed here, and its line in CMakeLists.txt.
#include <array>
#include <memory>

#include "sim/base/check.h"
#include "sim/collectives/algorithm.h"

namespace ulysim::collectives {

std::unique_ptr<const Algorithm> make_ring();
std::unique_ptr<const Algorithm> make_direct();
std::unique_ptr<const Algorithm> make_pairwise();
std::unique_ptr<const Algorithm> make_shift();

std::span<const Algorithm* const> algorithms() {
  static const std::array kOwned{make_ring(), make_direct(), make_pairwise(), make_shift()};
  static const auto kList = [] {
    std::array<const Algorithm*, kOwned.size()> list{};
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = kOwned[i].get();
    }
    return list;
  }();
  return kList;
}

const Algorithm& choose(Kind kind, const Group& group) {
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->supports(kind, group)) {
      return *algorithm;
    }
  }
  throw InternalError(fmt::format("no algorithm for {} over {} ranks", name(kind), group.ranks.size()));
}

const Algorithm* find(std::string_view name) {
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->name() == name) {
      return algorithm;
    }
  }
  return nullptr;
}

Bytes sent_bytes(Kind kind, Bytes payload, std::int64_t ranks) {
  ULYSIM_CHECK(payload.value() >= 0 && ranks >= 1, "{} of {} bytes over {} ranks", name(kind), payload.value(), ranks);
  if (ranks == 1) {
    return Bytes{};
  }
  if (kind == Kind::send_recv) {
    return payload;
  }
  const std::int64_t pieces = kind == Kind::all_reduce ? 2 * (ranks - 1) : ranks - 1;
  // payload · pieces / ranks, without the product, which leaves int64 for large payloads.
  return Bytes(payload.value() / ranks * pieces + payload.value() % ranks * pieces / ranks);
}

}  // namespace ulysim::collectives
