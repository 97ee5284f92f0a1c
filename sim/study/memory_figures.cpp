#include "sim/study/memory_figures.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "sim/strategies/zero_parts.h"

namespace ulysim::study {

namespace {

constexpr std::size_t kCurveSamples = 400;
constexpr std::size_t kPeakTensors = 20;

/// Process groups that communicate: each is a communicator with buffers of its own.
std::int64_t communicators(const workload::OpGraph& graph, std::int64_t further) {
  std::set<std::pair<std::uint16_t, workload::Stream>> groups;
  for (const workload::BlockTemplate& block : graph.templates) {
    for (const workload::Body& body : block.bodies) {
      for (const workload::Op& op : body.ops) {
        if (std::holds_alternative<workload::PipelineWork>(op.work)) {
          // Both ways and both neighbours share one.
          groups.emplace(workload::AxisSet{workload::MeshAxis::pipeline}.bits(), workload::Stream::forward_send);
        } else if (const auto* work = std::get_if<workload::CollectiveWork>(&op.work)) {
          // Gathers and reductions of one group share its communicator.
          const bool zero = op.stream == workload::Stream::zero_reduce;
          groups.emplace(graph.mesh.on_grid(work->axes).bits(), zero ? workload::Stream::zero_gather : op.stream);
        }
      }
    }
  }
  // A lone GPU has no peers to keep buffers for.
  return groups.empty() ? 0 : static_cast<std::int64_t>(groups.size()) + further;
}

/// Reduction buckets that ZeRO keeps beside the tensors of the graph.
std::int64_t bucket_bytes(const strategies::PlanContext& context, const workload::OpGraph& graph) {
  if (context.plan->zero < 2) {
    return 0;
  }
  const spec::Framework& f = *context.framework;
  const auto elements = static_cast<double>(strategies::reduce_bucket(context, graph));
  const auto wire = static_cast<double>(strategies::gradient_wire_bytes(context));
  return static_cast<std::int64_t>(elements * wire * (f.reduce_bucket_kept.value + f.reduce_bucket_transient.value));
}

/// What the allocator has left over between untiled logits, if those are there at the peak.
std::int64_t stranded_bytes(const spec::Framework& framework, const workload::OpGraph& graph,
                            const memory::Usage& gpu) {
  if (gpu.at_peak.at(static_cast<std::size_t>(workload::MemoryKind::logits)) == 0) {
    return 0;
  }
  for (const workload::BlockTemplate& block : graph.templates) {
    for (const workload::Tensor& tensor : block.tensors) {
      if (tensor.kind == workload::MemoryKind::logits && tensor.loop < 0) {
        const auto logits = static_cast<double>(workload::local_elements(tensor, graph.mesh));
        return static_cast<std::int64_t>(framework.logits_stranded_bytes.value * logits);
      }
    }
  }
  return 0;
}

/// Host bytes as the allocator takes them: pinned blocks are powers of two (PyTorch CachingHostAllocator). Weights are
/// one flat block of a rank (DeepSpeed stage3.py, _create_param_groups_fp16_flat_cpu_memory).
std::int64_t host_bytes(const spec::Framework& framework, const memory::Usage& host) {
  const auto block = [rounds = framework.pinned_blocks.value == spec::PinnedBlocks::power_of_two](std::int64_t bytes) {
    return rounds && bytes > 0 ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes))) : bytes;
  };
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  for (const memory::Holding& holding : host.holdings) {
    if (holding.kind == workload::MemoryKind::weights) {
      weights += holding.bytes;
    } else if (holding.pinned && holding.count > 0) {
      sum += block(holding.bytes / holding.count) * holding.count;
    } else {
      sum += holding.bytes;
    }
  }
  return sum + block(weights);
}

/// Ranks of a node read the checkpoint side by side.
std::optional<results::LoadPeak> load_peak(const scenario::Scenario& scenario, const scenario::PlanEntry& entry,
                                           const workload::Mesh& mesh) {
  using workload::MeshAxis;
  if (!entry.framework.loading) {
    return std::nullopt;
  }
  const spec::Loading& loading = *entry.framework.loading;
  // What tensor and pipeline ranks cut apart nobody reads whole.
  const double model = static_cast<double>(workload::count_parameters(scenario.model).total) /
                       static_cast<double>(mesh.size(MeshAxis::tensor)) /
                       static_cast<double>(mesh.size(MeshAxis::pipeline));
  const bool cut =
      strategies::cuts_parameters({.model = &scenario.model, .framework = &entry.framework, .plan = &entry.plan});
  const std::int64_t sharing = mesh.size(workload::kSampleAxes) / mesh.replicate;
  const double shard = cut ? model / static_cast<double>(sharing) : model;
  const auto ranks = static_cast<double>(scenario.cluster.gpus_per_node());
  const double gpu = loading.gpu_model_bytes.value * model + loading.gpu_shard_bytes.value * shard;
  const double host = (loading.host_rank_bytes.value * ranks + loading.host_node_bytes.value) * model;
  return results::LoadPeak{.gpu = Bytes(static_cast<std::int64_t>(gpu) + entry.framework.context_memory.value.value()),
                           .host_per_node = Bytes(static_cast<std::int64_t>(host))};
}

std::vector<results::MemorySample> thinned(const std::vector<memory::Sample>& curve, Instant peak_at) {
  std::vector<results::MemorySample> out;
  const std::size_t stride = std::max<std::size_t>(1, curve.size() / kCurveSamples);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (i % stride == 0 || i + 1 == curve.size() || curve[i].at == peak_at) {
      out.push_back({.at = curve[i].at, .allocated = Bytes(curve[i].bytes)});
    }
  }
  return out;
}

results::Fit fit_of(Bytes peak, Bytes capacity, double margin) {
  if (peak > capacity) {
    return results::Fit::no;
  }
  const double left = static_cast<double>((capacity - peak).value());
  return left < margin * static_cast<double>(capacity.value()) ? results::Fit::risky : results::Fit::yes;
}

}  // namespace

void set_memory(const scenario::Scenario& scenario, const scenario::PlanEntry& entry, const workload::OpGraph& graph,
                const memory::MemoryResult& books, results::Figures& figures) {
  const spec::Framework& f = entry.framework;
  const std::int64_t buckets =
      bucket_bytes({.model = &scenario.model, .framework = &entry.framework, .plan = &entry.plan}, graph);
  const auto positions =
      static_cast<std::int64_t>(f.position_table_bytes.value * static_cast<double>(entry.plan.sequence_length) *
                                static_cast<double>(workload::query_head_dim(scenario.model)));
  const std::int64_t allocated = books.gpu.peak + buckets + positions;
  const auto reserved = static_cast<std::int64_t>(static_cast<double>(allocated) * f.fragmentation.value) +
                        stranded_bytes(f, graph, books.gpu);
  const std::int64_t nccl =
      f.nccl_memory_per_communicator.value.value() * communicators(graph, f.further_communicators.value);
  const std::int64_t context = f.context_memory.value.value();
  const std::int64_t workspace = f.workspace_memory.value.value();
  figures.peak_gpu_allocated = Bytes(allocated);
  figures.peak_gpu_reserved = Bytes(reserved + workspace);
  figures.peak_gpu_memory = Bytes(reserved + workspace + nccl + context);
  figures.gpu_memory_capacity = scenario.cluster.gpu.memory.value;
  for (std::size_t kind = 0; kind < workload::kMemoryKinds; ++kind) {
    figures.memory.push_back(
        {.name = name(static_cast<workload::MemoryKind>(kind)), .bytes = Bytes(books.gpu.at_peak.at(kind))});
  }
  figures.memory.push_back({.name = "reduction_buckets", .bytes = Bytes(buckets)});
  if (positions > 0) {
    figures.memory.push_back({.name = "position_table", .bytes = Bytes(positions)});
  }
  figures.memory.push_back({.name = "fragmentation", .bytes = Bytes(reserved - allocated)});
  figures.memory.push_back({.name = "kernel_workspace", .bytes = Bytes(workspace)});
  figures.memory.push_back({.name = "nccl", .bytes = Bytes(nccl)});
  figures.memory.push_back({.name = "context", .bytes = Bytes(context)});
  for (std::size_t i = 0; i < books.gpu.holdings.size() && i < kPeakTensors; ++i) {
    const memory::Holding& h = books.gpu.holdings[i];
    figures.peak_tensors.push_back({.name = h.name, .kind = name(h.kind), .bytes = Bytes(h.bytes), .count = h.count});
  }
  figures.memory_curve = thinned(books.gpu.curve, books.gpu.peak_at);
  figures.peak_host_memory_per_node = Bytes(host_bytes(f, books.host) * scenario.cluster.gpus_per_node());
  figures.host_memory_capacity_per_node = scenario.cluster.usable_host_memory_per_node();
  figures.load_peak = load_peak(scenario, entry, graph.mesh);
  if (const std::optional<Bytes> drives = scenario.cluster.usable_nvme_per_node(); drives && entry.plan.uses_nvme()) {
    figures.nvme = {.peak_per_node = Bytes(books.nvme.peak * scenario.cluster.gpus_per_node()),
                    .capacity_per_node = *drives};
    figures.nvme_fit = fit_of(figures.nvme->peak_per_node, *drives, f.risky_margin.value);
  }
  figures.gpu_fit = fit_of(figures.peak_gpu_memory, figures.gpu_memory_capacity, f.risky_margin.value);
  figures.host_fit =
      fit_of(figures.peak_host_memory_per_node, figures.host_memory_capacity_per_node, f.risky_margin.value);
}

}  // namespace ulysim::study
