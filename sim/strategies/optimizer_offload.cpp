#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/base/check.h"
#include "sim/strategies/optimizer_bytes.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Optimizer states and gradient shards in host memory, Adam on the node's cores (ZeRO-Offload, arXiv 2101.06840); or
/// the states on NVMe, updated chunk by chunk in pinned buffers (ZeRO-Infinity, arXiv 2104.07857 §5.2; DeepSpeed
/// runtime/swap_tensor/pipelined_optimizer_swapper.py).
class OptimizerOffload final : public Strategy {
 public:
  std::string name() const override { return "optimizer-offload"; }
  std::string summary() const override { return "optimizer states in host memory or on NVMe, Adam on the CPU"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    const Plan& plan = *context.plan;
    if (plan.optimizer_offload == Offload::none) {
      return {};
    }
    if (plan.zero == 0) {
      return {{"optimizer offload needs ZeRO: stage 0 keeps whole states on every GPU", {{"zero", 0}}, "zero: 3"}};
    }
    if (plan.optimizer_offload == Offload::nvme && !context.framework->optimizer_swap) {
      return {{fmt::format("optimizer.offload: nvme: {} does not swap optimizer states", context.framework->name),
               {},
               "optimizer.offload: cpu"}};
    }
    return {};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->optimizer_offload == Offload::none) {
      return;
    }
    if (context.plan->optimizer_offload == Offload::nvme) {
      const spec::OptimizerSwap& swap = *context.framework->optimizer_swap;
      // A chunk fills as many fp32 buffers as it has values: master, two moments, gradient.
      constexpr std::int64_t kBuffersOfAChunk = 4;
      graph.credit_windows[static_cast<std::size_t>(CreditPool::nvme_buffers)] =
          std::max(1 + swap.overlap.value, swap.buffers.value / kBuffersOfAChunk);
    }
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::optimizer) {
        UpdatePass(context, graph.mesh, block).run();
        continue;
      }
      for (Body& body : block.bodies) {
        move_gradients(context, graph.mesh, block, body);
      }
    }
  }

 private:
  static std::int64_t whole(double bytes) { return static_cast<std::int64_t>(bytes); }

  /// The running sum of a shard comes back, takes the micro-batch's gradient in and goes out again; the last
  /// micro-batch sends it once more in fp32 (DeepSpeed stage3.py, partition_grads,
  /// _offload_grad_partition_at_boundary).
  static void move_gradients(const PlanContext& context, const Mesh& mesh, BlockTemplate& block, Body& body) {
    const spec::Framework& framework = *context.framework;
    const bool drives = context.plan->optimizer_offload == Offload::nvme;
    std::vector<Op> out;
    for (Op& op : body.ops) {
      const bool accumulates = std::holds_alternative<ElementwiseWork>(op.work) && !op.writes.empty() &&
                               block.tensor(op.writes[0]).persistent &&
                               block.tensor(op.writes[0]).kind == MemoryKind::gradients;
      const bool reduces_last = is_collective(op) && op.purpose == Purpose::gradients && !op.writes.empty() &&
                                block.tensor(op.writes[0]).persistent && block.tensor(op.writes[0]).partial.empty();
      if (!accumulates && !reduces_last) {
        out.push_back(std::move(op));
        continue;
      }
      if (accumulates && !mesh.without_trivial(block.tensor(op.writes[0]).partial).empty()) {
        // Stage 1 adds up whole gradients on the GPU; what leaves is the shard that its last reduction yields.
        out.push_back(std::move(op));
        continue;
      }
      std::int64_t elements = 0;
      for (const TensorId id : op.writes) {
        elements += local_elements(block.tensor(id), mesh);
        block.tensor(id).shared = true;  // the host's copy is counted with the optimizer states
      }
      const auto flat = [&](const std::string& name, double bytes, Space space, bool staged = false) {
        return block.add({.name = name + "_" + op.name,
                          .shape = {{.dim = Dim::elements, .size = elements}},
                          .element_bytes = whole(bytes),
                          .space = space,
                          .kind = MemoryKind::gradients,
                          .persistent = space != Space::gpu && !staged,
                          .shared = space != Space::gpu && !staged,
                          .pinned = staged});
      };
      const auto copy = [&](const std::string& name, TensorId from, TensorId to, Stream stream) {
        return Op{.name = name + "_" + op.name,
                  .work = CopyWork{},
                  .reads = {from},
                  .writes = {to},
                  .stream = stream,
                  .purpose = Purpose::optimizer_offload};
      };
      const TensorId last = flat("last", framework.offload_gradient_boundary_d2h_bytes.value, Space::gpu);
      const TensorId kept = flat("kept", framework.offload_gradient_boundary_d2h_bytes.value, Space::host, drives);
      Op widen{.name = "widen_" + op.name,
               .work = ElementwiseWork{.traffic = {{last, 6.0}}, .launches = 1},
               .writes = {last},
               .stream = op.stream,
               .when = When::last_micro_batch};
      Op offload_last = copy("offload_last", last, kept, Stream::device_to_host);
      offload_last.when = When::last_micro_batch;
      std::vector<Op> leave{std::move(offload_last)};
      if (drives) {
        // The fp32 gradient passes through a pinned buffer (swap_out_gradients).
        leave.front().acquire = CreditPool::nvme_buffers;
        const TensorId stored = flat("stored", framework.optimizer_swap->gradient_written_bytes.value, Space::nvme);
        leave.push_back(copy("store_last", kept, stored, Stream::nvme_write));
        leave.back().when = When::last_micro_batch;
        leave.back().release.insert(CreditPool::nvme_buffers);
      }
      if (reduces_last) {
        widen.reads = op.writes;
        out.insert(out.end(), {op, std::move(widen)});
        out.insert(out.end(), leave.begin(), leave.end());
        continue;
      }
      const double out_bytes = framework.offload_gradient_d2h_bytes.value;
      const TensorId sent = flat("sent", out_bytes, Space::gpu);
      const TensorId held = flat("held", out_bytes, Space::host);
      const TensorId back = flat("back", framework.offload_gradient_h2d_bytes.value, Space::gpu);
      op.reads.push_back(back);
      op.writes = {sent};
      widen.reads = {sent};
      const Op offload = copy("offload", sent, held, Stream::device_to_host);
      out.push_back(copy("return", held, back, Stream::host_to_device));
      out.insert(out.end(), {op, std::move(widen)});
      out.insert(out.end(), leave.begin(), leave.end());
      out.push_back(offload);
    }
    body.ops = std::move(out);
  }

  /// The update on the host. Whatever hands the weights on reads the copy that came back to the GPU.
  class UpdatePass {
   public:
    UpdatePass(const PlanContext& context, const Mesh& mesh, BlockTemplate& block)
        : framework_(*context.framework),
          bytes_(optimizer_bytes(*context.framework, *context.plan)),
          mesh_(mesh),
          block_(block),
          drives_(context.plan->optimizer_offload == Offload::nvme),
          parameters_(context.plan->parameter_offload) {}

    void run() {
      std::vector<std::size_t> states;
      for (std::size_t i = 0; i < block_.tensors.size(); ++i) {
        if (block_.tensors[i].kind == MemoryKind::optimizer_states) {
          states.push_back(i);
        }
      }
      ULYSIM_CHECK(!states.empty(), "no optimizer states to move");
      Body& update = block_.body(Phase::update);
      std::vector<Op> ops;
      if (drives_) {
        for (const std::size_t i : states) {
          swap(i, update.ops.front(), ops);
        }
      } else {
        update_in_memory(states, update.ops.front(), ops);
      }
      const auto last = static_cast<std::uint32_t>(ops.size() - 1);
      for (std::size_t i = 1; i < update.ops.size(); ++i) {
        ops.push_back(std::move(update.ops[i]));
        ops.back().after.emplace_back(last);
      }
      update.ops = std::move(ops);
    }

   private:
    [[nodiscard]] static std::string experts(const Tensor& states) {
      return states.find(Dim::experts) != nullptr ? "_experts" : "";
    }

    void update_in_memory(const std::vector<std::size_t>& states, const Op& adam_on_gpu, std::vector<Op>& ops) {
      Op adam = on_host(adam_on_gpu);
      Op back = way_home("");
      for (const std::size_t i : states) {
        const Tensor whole = block_.tensors[i];
        block_.tensors[i].space = Space::host;
        block_.tensors[i].element_bytes =
            whole_bytes(bytes_.host - framework_.host_pinned_bytes.value - framework_.host_pinned_chunk_bytes.value);
        pin(whole);
        std::get<HostWork>(adam.work).traffic.push_back({TensorId(i), bytes_.host_traffic});
        weights(whole, "", adam, back);
      }
      ops.push_back(std::move(adam));
      if (parameters_ != Offload::cpu) {
        ops.push_back(std::move(back));
      }
    }

    /// Where the weights live when the step is over: on the GPU, or on the drives; nowhere to go if that is here.
    [[nodiscard]] Op way_home(const std::string& suffix) const {
      return parameters_ == Offload::nvme ? copy("store_updated_weights" + suffix, Stream::nvme_write)
                                          : copy("return_updated_weights" + suffix, Stream::host_to_device);
    }

    /// Gradients stand in pinned memory: those in the accumulation type in one block, the fp32 ones in blocks of a
    /// chunk.
    void pin(const Tensor& states) {
      const auto block = [&](const std::string& name, double bytes, const Tensor& like_this) {
        if (bytes > 0) {
          Tensor tensor = like_this;
          tensor.name = name + experts(states);
          tensor.space = Space::host;
          tensor.element_bytes = whole_bytes(bytes);
          tensor.pinned = true;
          block_.add(std::move(tensor));
        }
      };
      block("pinned_gradients", framework_.host_pinned_bytes.value, states);
      if (framework_.host_pinned_chunk_bytes.value > 0) {
        const std::int64_t count = chunks_of(states);
        for (std::int64_t c = 0; c < count; ++c) {
          block(fmt::format("pinned_fp32_gradients_{}", c), framework_.host_pinned_chunk_bytes.value,
                chunk_of(states, c, count));
        }
      }
    }

    void swap(std::size_t index, const Op& adam_on_gpu, std::vector<Op>& ops) {
      const spec::OptimizerSwap& swap = *framework_.optimizer_swap;
      const Tensor states = block_.tensors[index];
      const std::int64_t count = chunks_of(states);
      const double gradient_bytes = swap.read_bytes.value - swap.written_bytes.value;
      block_.tensors[index].space = Space::host;
      block_.tensors[index].element_bytes = whole_bytes(swap.host_bytes.value);
      block_.tensors[index].pinned = true;
      add("swap_buffers" + experts(states), chunk_of(states, 0, count), 4.0 * static_cast<double>(swap.buffers.value),
          Space::host, Storage::own);
      for (std::int64_t c = 0; c < count; ++c) {
        const Tensor part = chunk_of(states, c, count);
        const std::string suffix = fmt::format("{}_{}", experts(states), c);
        const TensorId stored = add("stored" + suffix, part, swap.written_bytes.value, Space::nvme, Storage::own);
        const TensorId gradient = add("stored_gradient" + suffix, part, gradient_bytes, Space::nvme, Storage::own);
        const TensorId in = add("swapped_in" + suffix, part, swap.written_bytes.value, Space::host, Storage::shared);
        const TensorId gradient_in =
            add("swapped_in_gradient" + suffix, part, gradient_bytes, Space::host, Storage::shared);
        Op read = copy("swap_in" + suffix, Stream::nvme_read);
        read.reads = {stored, gradient};
        read.writes = {in, gradient_in};
        read.acquire = CreditPool::nvme_buffers;
        read.drains = adam_on_gpu.drains && ops.empty();
        read.host_waits = swap.overlap.value == 0;
        Op adam = on_host(adam_on_gpu);
        adam.name += suffix;
        adam.drains = false;
        adam.reads = {in, gradient_in};
        adam.writes = {in};
        adam.host_waits = swap.overlap.value == 0;
        if (c + 1 == count) {
          // What stages 1 and 2 gather afterwards.
          std::copy_if(adam_on_gpu.writes.begin(), adam_on_gpu.writes.end(), std::back_inserter(adam.writes),
                       [index](TensorId id) { return id.index() != index; });
        }
        std::get<HostWork>(adam.work).traffic.push_back({in, bytes_.host_traffic});
        Op write = copy("swap_out" + suffix, Stream::nvme_write);
        write.reads = {in};
        write.writes = {stored};
        write.release.insert(CreditPool::nvme_buffers);
        write.host_waits = swap.overlap.value == 0;
        Op back = way_home(suffix);
        weights(part, fmt::format("_{}", c), adam, back);
        ops.insert(ops.end(), {std::move(read), std::move(adam), std::move(write)});
        if (parameters_ != Offload::cpu) {
          ops.push_back(std::move(back));
        }
      }
    }

    [[nodiscard]] Op on_host(const Op& adam_on_gpu) const {
      Op adam = adam_on_gpu;
      adam.work = HostWork{.node_rate = framework_.host_adam_rate.value};
      adam.scratch.clear();
      adam.stream = Stream::host_work;
      adam.host_waits = true;
      return adam;
    }

    [[nodiscard]] static Op copy(const std::string& name, Stream stream) {
      return {.name = name,
              .work = CopyWork{},
              .stream = stream,
              .purpose = Purpose::optimizer_offload,
              .host_waits = true};
    }

    /// Updated weights, as Adam writes them and as they come back to where they live.
    void weights(const Tensor& states, const std::string& suffix, Op& adam, Op& back) {
      Tensor updated = states;
      updated.name = "updated" + experts(states) + "_on_host" + suffix;
      updated.space = Space::host;
      updated.element_bytes =
          whole_bytes(framework_.offload_weight_h2d_bytes.value * bytes_.weight / framework_.weight_bytes.value);
      updated.kind = MemoryKind::weights;
      updated.shared = true;
      Tensor at_home = updated;
      at_home.name = "updated" + experts(states) + (parameters_ == Offload::nvme ? "_stored" : "_on_gpu") + suffix;
      at_home.space = parameters_ == Offload::nvme ? Space::nvme : Space::gpu;
      adam.writes.push_back(block_.add(std::move(updated)));
      back.reads.push_back(adam.writes.back());
      back.writes.push_back(block_.add(std::move(at_home)));
    }

    enum class Storage : std::uint8_t { own, shared };
    TensorId add(std::string name, Tensor tensor, double bytes, Space space, Storage storage) {
      tensor.name = std::move(name);
      tensor.space = space;
      tensor.element_bytes = whole_bytes(bytes);
      tensor.shared = storage == Storage::shared;
      tensor.pinned = space == Space::host;
      return block_.add(std::move(tensor));
    }

    [[nodiscard]] std::int64_t chunks_of(const Tensor& states) const {
      const std::int64_t chunk = framework_.optimizer_chunk_elements.value;
      return std::max<std::int64_t>(1, (local_elements(states, mesh_) + chunk - 1) / chunk);
    }

    /// One of `count` equal parts, rounded so that they sum to the whole; the first is never the smaller one.
    [[nodiscard]] static Tensor chunk_of(Tensor states, std::int64_t index, std::int64_t count) {
      Extent& elements = states.shape.front();
      elements.size = elements.size / count + (index < elements.size % count ? 1 : 0);
      return states;
    }

    static std::int64_t whole_bytes(double bytes) { return static_cast<std::int64_t>(bytes); }

    const spec::Framework& framework_;
    OptimizerBytes bytes_;
    const Mesh& mesh_;
    BlockTemplate& block_;
    bool drives_;
    Offload parameters_;  ///< on the host
  };
};

}  // namespace

const Strategy& optimizer_offload_strategy() {
  static const OptimizerOffload strategy;
  return strategy;
}

}  // namespace ulysim::strategies
