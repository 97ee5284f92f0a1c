#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/op.h"

namespace ulysim::workload {

/// A part of a body that runs `trips` times, each time on 1/trips of the tokens (a tiled MLP), of the query heads, or
/// of the matrices (Muon).
struct Loop {
  std::string name{};
  std::int64_t trips{1};
  Dim dim{Dim::tokens};      ///< tokens, heads or matrices
  std::int64_t kv_trips{1};  ///< of heads: key/value heads are divided by this
};

/// Ops in program order. Ops of one loop stand together, unless its parts are written out.
struct Body {
  std::vector<Op> ops{};
  std::vector<Loop> loops{};
};

/// How often an op of `body` runs in a row each time that the body runs.
[[nodiscard]] inline std::int64_t runs_of(const Body& body, const Op& op) {
  if (op.loop < 0) {
    return 1;
  }
  return op.part ? op.repeats : body.loops[static_cast<std::size_t>(op.loop)].trips;
}

enum class Phase : std::uint8_t { forward, backward, update };
inline constexpr std::size_t kPhases = 3;
[[nodiscard]] const char* name(Phase phase);

/// boundary: an end of a pipeline stage, where the chain goes on at another rank.
enum class BlockKind : std::uint8_t { embedding, layer, head, optimizer, boundary };

/// One kind of block: the tensors of an instance and what is done with them in each phase.
struct BlockTemplate {
  std::string name{};
  BlockKind kind{BlockKind::layer};
  std::vector<Tensor> tensors{};
  std::array<Body, kPhases> bodies{};
  std::int64_t instances{};  ///< blocks of this kind in the model

  [[nodiscard]] Body& body(Phase phase) { return bodies[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] const Body& body(Phase phase) const { return bodies[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] Tensor& tensor(TensorId id) { return tensors[id.index()]; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const { return tensors[id.index()]; }
  TensorId add(Tensor tensor);
};

/// One entry of a program: run a body of a template for one block and micro-batch.
struct Instance {
  TemplateId block_template{};
  std::int32_t block{};  ///< position in the chain embedding, layer 0 …, head; the optimizer comes last
  /// Of its block: 0 without pipelines. The ends of stages stand in the chain too, two between each and the next.
  std::int32_t virtual_stage{};
  std::int32_t micro_batch{};
  Phase phase{Phase::forward};
  bool last_micro_batch{};
};

/// A set of ranks that run the same program on equal tables.
struct Role {
  std::string name{"all"};
  std::int64_t stage{};  ///< pipeline coordinate of its ranks; roles of one stage meet in the same collectives
  std::vector<Instance> program{};
};

/// Position of an instance's layer in the model, 0 for the first. Requires a block of kind layer.
[[nodiscard]] std::int64_t layer_number(const Instance& instance);

/// How many holders a pool admits at once.
using CreditWindows = std::array<std::int64_t, kCreditPools>;

/// What one attention call finds unmasked, and the rectangle that holds it: queries × keys.
struct AttentionShape {
  std::int64_t unmasked{};
  std::int64_t computed{};
  std::int64_t queries{};
  std::int64_t keys{};
};

/// One training step: templates, and per role the program that strings them together. Passes rewrite templates;
/// only the engine unrolls.
struct OpGraph {
  Mesh mesh{};
  std::vector<BlockTemplate> templates{};
  std::vector<Role> roles{};
  CreditWindows credit_windows{1, 1, 1, 1, 1, 1, 1, 1};
  std::int64_t micro_batches{1};
  /// By ring coordinate, for masks that are slow to count; shared by the calls that see the same tokens.
  std::vector<std::vector<AttentionShape>> attention_tables{};

  [[nodiscard]] const BlockTemplate& of(const Instance& instance) const {
    return templates[instance.block_template.index()];
  }
};

}  // namespace ulysim::workload
