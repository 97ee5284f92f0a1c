#pragma once

#include <cstdint>

namespace ulysim::workload {

enum class CollectiveKind : std::uint8_t { all_to_all, all_gather, reduce_scatter, all_reduce, send_recv };
inline constexpr std::size_t kCollectiveKinds = 5;
[[nodiscard]] const char* name(CollectiveKind kind);  ///< "all_to_all" …, as in results

}  // namespace ulysim::workload
