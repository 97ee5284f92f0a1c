#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/fold.h"
#include "sim/workload/op_graph.h"
#include "sim/workload/unroll.h"

namespace ulysim::engine {

/// A kernel on one class of ranks.
struct KernelCost {
  Duration time{};
  std::int64_t launches{1};
};

/// An op of a body, with everything that does not change from instance to instance.
struct OpKind {
  enum class Work : std::uint8_t { compute, collective, message, copy, host };
  const workload::Op* op{};
  Work work{Work::compute};
  std::vector<KernelCost> kernels{};       ///< compute: by rank class, or one for all
  std::optional<std::uint32_t> pattern{};  ///< index in the folding; nothing: no communication happens
  std::int64_t payload{};                  ///< bytes of one rank; 0: nothing moves
  double copy_efficiency{1.0};             ///< of a pageable copy below 1
  Duration tail{};                         ///< after the flows (host work)

  [[nodiscard]] const KernelCost& kernel(std::size_t rank_class) const {
    return kernels[kernels.size() == 1 ? 0 : rank_class];
  }
  [[nodiscard]] std::int64_t launches(std::size_t rank_class) const {
    return work == Work::compute ? kernel(rank_class).launches : 1;
  }
  /// Its participants meet before anything moves, and NCCL's kernels move it.
  [[nodiscard]] bool communicates() const { return work == Work::collective || work == Work::message; }
};

/// The two ends of a message, by side (send, receive).
struct Message {
  struct End {
    std::size_t role{};
    std::uint32_t op{};
    bool known{};
  };
  std::array<End, 2> ends{};
};

/// The schedule of a role made ready to run: kinds are priced once, however many layers and micro-batches repeat them.
struct Program {
  const workload::OpGraph* graph{};
  const workload::Schedule* schedule{};
  std::vector<OpKind> kinds{};
  std::vector<std::uint32_t> kind_of{};     ///< by op
  std::vector<std::uint32_t> message_of{};  ///< by op; of those that are messages, the index
  std::vector<std::uint32_t> first_successor{};
  std::vector<std::uint32_t> successors{};
  std::array<std::vector<std::uint32_t>, workload::kCreditPools> acquirers{};  ///< by pool, in program order

  [[nodiscard]] std::size_t size() const { return kind_of.size(); }
  [[nodiscard]] const OpKind& kind(std::size_t op) const { return kinds[kind_of[op]]; }
  [[nodiscard]] std::span<const std::uint32_t> successors_of(std::size_t op) const {
    return std::span(successors).subspan(first_successor[op], first_successor[op + 1] - first_successor[op]);
  }
  /// "layer.attention (block 3, micro-batch 0, trip 2)", for sentences.
  [[nodiscard]] std::string describe(std::size_t op) const;
};

/// Of all roles.
struct Programs {
  std::vector<Program> of_role{};
  std::vector<Message> messages{};
};

/// schedules[r] = unroll(graph, r). InternalError when a message lacks an end.
[[nodiscard]] Programs prepare(const workload::OpGraph& graph, std::span<const workload::Schedule> schedules,
                               const Folding& folding, const Machine& machine);

}  // namespace ulysim::engine
