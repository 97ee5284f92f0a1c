#include "sim/workload/shape.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/workload/token_set.h"

namespace ulysim::workload {

namespace {

/// The loop that an op or a tensor belongs to; one of a single trip for none.
const Loop& loop_of(const Body& body, std::int32_t loop) {
  static const Loop kNone{};
  return loop < 0 ? kNone : body.loops[static_cast<std::size_t>(loop)];
}

/// Local size of an extent as one trip sees it.
std::int64_t trip_size(const Extent& extent, const Mesh& mesh, const Loop& loop) {
  const std::int64_t size = local_size(extent, mesh);
  const bool kv = extent.dim == Dim::kv_heads && loop.dim == Dim::heads;
  const std::int64_t trips = kv ? loop.kv_trips : extent.dim == loop.dim ? loop.trips : 1;
  return (size + trips - 1) / trips;
}

std::int64_t trip_elements(const Tensor& tensor, const Mesh& mesh, const Loop& loop) {
  std::int64_t product = 1;
  for (const Extent& extent : tensor.shape) {
    product *= trip_size(extent, mesh, loop);
  }
  return product;
}

std::int64_t product_of(const std::vector<Dim>& dims, const Tensor& operand, const Mesh& mesh, const Loop& loop) {
  std::int64_t product = 1;
  for (const Dim dim : dims) {
    const Extent* extent = operand.find(dim);
    ULYSIM_CHECK(extent != nullptr, "operand {} has no dimension {}", operand.name, name(dim));
    product *= trip_size(*extent, mesh, loop);
  }
  return product;
}

/// The positions of chunk `index` of `chunks` equal ones.
TokenSet chunk_of(std::int64_t tokens, std::int64_t index, std::int64_t chunks) {
  return {{.first = tokens / chunks * index, .end = tokens / chunks * (index + 1)}};
}

AttentionShape attention_shape(const OpGraph& graph, const BlockTemplate& block, const Op& op,
                               const AttentionWork& work, const Loop& loop, At at) {
  const Extent& query_tokens = *block.tensor(op.reads[0]).find(Dim::tokens);
  const Extent& key_tokens = *block.tensor(op.reads[1]).find(Dim::tokens);
  const std::int64_t rings = graph.mesh.size(MeshAxis::ring);
  const std::int64_t owner = ((at.ring - work.key_shift) % rings + rings) % rings;
  const auto tokens_at = [rings](const Extent& extent, std::int64_t ring) {
    return extent.split_by(MeshAxis::ring) ? ring_tokens(extent.size, extent.layout, ring, rings)
                                           : ring_tokens(extent.size, Layout::contiguous, 0, 1);
  };
  const TokenSet queries =
      work.chunks ? chunk_of(query_tokens.size, work.chunks->query, loop.trips) : tokens_at(query_tokens, at.ring);
  TokenSet keys = work.chunks ? chunk_of(key_tokens.size, work.chunks->key, loop.trips)
                              : tokens_at(work.gathered_keys ? query_tokens : key_tokens, owner);
  if (queries.front().step != keys.front().step) {
    // Striped queries against gathered keys: the keys, seen as all stripes.
    keys.clear();
    for (std::int64_t stripe = 0; stripe < rings; ++stripe) {
      keys.push_back({.first = stripe, .end = key_tokens.size, .step = rings});
    }
  }
  const Rectangle box = bounding_rectangle(queries, keys, work.mask);
  const PairCount pairs = pair_count(queries, keys, work.mask);
  return {.unmasked = pairs.unmasked, .computed = pairs.computed, .queries = box.queries, .keys = box.keys};
}

kernel::Kernel attention_kernel(const OpGraph& graph, const BlockTemplate& block, const Loop& loop, const Op& op,
                                const AttentionWork& work, At at) {
  const Tensor& q = block.tensor(op.reads[0]);
  const Tensor& k = block.tensor(op.reads[1]);
  const Extent* value_width = block.tensor(op.reads[2]).find(Dim::v_head_dim);
  const AttentionShape shape = work.table ? graph.attention_tables[*work.table].at(static_cast<std::size_t>(at.ring))
                                          : attention_shape(graph, block, op, work, loop, at);
  return kernel::Attention{.implementation = work.implementation,
                           .direction = work.direction,
                           .sequences = local_size(*q.find(Dim::batch), graph.mesh),
                           .heads = trip_size(*q.find(Dim::heads), graph.mesh, loop),
                           .kv_heads = trip_size(*k.find(Dim::kv_heads), graph.mesh, loop),
                           .head_dim = q.find(Dim::head_dim)->size,
                           .v_head_dim = value_width == nullptr ? std::nullopt : std::optional(value_width->size),
                           .queries = shape.queries,
                           .keys = shape.keys,
                           .pairs = shape.unmasked,
                           .computed_pairs = work.mask.sparse ? std::optional(shape.computed) : std::nullopt};
}

/// Two calls with equal ones see the same tokens at every coordinate.
struct TableKey {
  Mask mask{};
  std::int64_t key_shift{};
  Extent queries{};
  Extent keys{};
  friend bool operator==(const TableKey&, const TableKey&) = default;
};

Bytes traffic_sum(const OpGraph& graph, const BlockTemplate& block, const Loop& loop,
                  const std::vector<Traffic>& traffic) {
  double bytes = 0;
  for (const Traffic& t : traffic) {
    bytes += t.bytes_per_element * static_cast<double>(trip_elements(block.tensor(t.tensor), graph.mesh, loop));
  }
  return Bytes(std::lround(bytes));
}

}  // namespace

kernel::Kernel kernel_of(const OpGraph& graph, const BlockTemplate& block, const Body& body, const Op& op, At at) {
  const Loop& loop = loop_of(body, op.loop);
  if (const auto* gemm = std::get_if<GemmWork>(&op.work)) {
    const Tensor& a = block.tensor(op.reads[0]);
    const Tensor& b = block.tensor(op.reads[1]);
    return kernel::Gemm{.m = product_of(gemm->m, a, graph.mesh, loop),
                        .n = product_of(gemm->n, b, graph.mesh, loop),
                        .k = product_of(gemm->k, a, graph.mesh, loop),
                        .batch = product_of(gemm->groups, a, graph.mesh, loop),
                        .precision = gemm->precision};
  }
  if (const auto* attention = std::get_if<AttentionWork>(&op.work)) {
    return attention_kernel(graph, block, loop, op, *attention, at);
  }
  const auto* elementwise = std::get_if<ElementwiseWork>(&op.work);
  ULYSIM_CHECK(elementwise != nullptr, "op {} of {} is no compute op", op.name, block.name);
  return kernel::MemoryBound{.traffic = traffic_sum(graph, block, loop, elementwise->traffic),
                             .launches = elementwise->launches};
}

Bytes payload_of(const OpGraph& graph, const BlockTemplate& block, const Body& body, const Op& op) {
  const auto* collective = std::get_if<CollectiveWork>(&op.work);
  const auto* message = std::get_if<PipelineWork>(&op.work);
  const bool received = (collective != nullptr && collective->kind == CollectiveKind::all_gather) ||
                        (message != nullptr && message->side == PipelineWork::Side::receive);
  const Loop& loop = loop_of(body, op.loop);
  Bytes sum;
  for (const TensorId id : received ? op.writes : op.reads) {
    const Tensor& tensor = block.tensor(id);
    sum += bytes_of(tensor, trip_elements(tensor, graph.mesh, loop) * (op.part ? op.repeats : 1));
  }
  return sum;
}

Bytes host_traffic_of(const OpGraph& graph, const BlockTemplate& block, const Body& body, const Op& op) {
  const auto* host = std::get_if<HostWork>(&op.work);
  ULYSIM_CHECK(host != nullptr, "op {} of {} is no host work", op.name, block.name);
  return traffic_sum(graph, block, loop_of(body, op.loop), host->traffic);
}

Bytes held_bytes(const OpGraph& graph, const Body& body, const Tensor& tensor) {
  return bytes_of(tensor, trip_elements(tensor, graph.mesh, loop_of(body, tensor.loop)));
}

void tabulate_attention(OpGraph& graph) {
  constexpr std::int64_t kMostRings = 2048;  // steps × coordinates of a table stay within memory
  const std::int64_t rings = graph.mesh.size(MeshAxis::ring);
  if (rings > kMostRings) {
    return;
  }
  std::vector<TableKey> known;
  for (BlockTemplate& block : graph.templates) {
    for (Body& body : block.bodies) {
      for (Op& op : body.ops) {
        auto* work = std::get_if<AttentionWork>(&op.work);
        if (work == nullptr || work->chunks || !(work->mask.sparse || work->mask.documents || work->mask.chunk)) {
          continue;
        }
        const TableKey key{.mask = work->mask,
                           .key_shift = work->key_shift,
                           .queries = *block.tensor(op.reads[0]).find(Dim::tokens),
                           .keys = *block.tensor(op.reads[work->gathered_keys ? 0 : 1]).find(Dim::tokens)};
        const auto found = std::find(known.begin(), known.end(), key);
        work->table = static_cast<std::size_t>(found - known.begin());
        if (found != known.end()) {
          continue;
        }
        known.push_back(key);
        auto& table = graph.attention_tables.emplace_back();
        for (std::int64_t ring = 0; ring < rings; ++ring) {
          table.push_back(attention_shape(graph, block, op, *work, loop_of(body, op.loop), {.ring = ring}));
        }
      }
    }
  }
}

double attention_imbalance(const OpGraph& graph) {
  const std::int64_t rings = graph.mesh.size(MeshAxis::ring);
  double most = 0;
  double all = 0;
  for (std::int64_t ring = 0; ring < rings; ++ring) {
    double pairs = 0;
    for (const BlockTemplate& block : graph.templates) {
      const Body& body = block.body(Phase::forward);
      for (const Op& op : body.ops) {
        if (std::holds_alternative<AttentionWork>(op.work)) {
          const auto call = std::get<kernel::Attention>(kernel_of(graph, block, body, op, {.ring = ring}));
          pairs += static_cast<double>(call.executed_pairs()) * static_cast<double>(block.instances);
        }
      }
    }
    most = std::max(most, pairs);
    all += pairs;
  }
  return all > 0 ? most * static_cast<double>(rings) / all : 1.0;
}

bool work_depends_on_ring(const OpGraph& graph) {
  const std::int64_t rings = graph.mesh.size(MeshAxis::ring);
  if (rings == 1) {
    return false;
  }
  for (const BlockTemplate& block : graph.templates) {
    for (const Body& body : block.bodies) {
      for (const Op& op : body.ops) {
        if (!std::holds_alternative<AttentionWork>(op.work)) {
          continue;
        }
        const auto first = std::get<kernel::Attention>(kernel_of(graph, block, body, op, {.ring = 0}));
        for (std::int64_t ring = 1; ring < rings; ++ring) {
          const auto other = std::get<kernel::Attention>(kernel_of(graph, block, body, op, {.ring = ring}));
          if (other.pairs != first.pairs || other.queries != first.queries || other.keys != first.keys) {
            return true;
          }
        }
      }
    }
  }
  return false;
}

}  // namespace ulysim::workload
