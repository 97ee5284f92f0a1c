#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ulysim {

/// A strong index: a RankId is never taken for a LinkId. `index()` goes into vectors.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t value) : value_(value) {}
  constexpr explicit Id(std::size_t value) : value_(static_cast<std::uint32_t>(value)) {}
  constexpr explicit Id(int value) : value_(static_cast<std::uint32_t>(value)) {}
  [[nodiscard]] constexpr std::size_t index() const { return value_; }
  friend constexpr bool operator==(Id a, Id b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Id a, Id b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Id a, Id b) { return a.value_ < b.value_; }

 private:
  std::uint32_t value_{};
};

using RankId = Id<struct RankTag>;          ///< a GPU of the job, 0 … world−1
using LinkId = Id<struct LinkTag>;          ///< a directed link of the topology
using OpId = Id<struct OpTag>;              ///< an op within one body of one template
using TensorId = Id<struct TensorTag>;      ///< a tensor within one template
using TemplateId = Id<struct TemplateTag>;  ///< a block template within one OpGraph

}  // namespace ulysim
