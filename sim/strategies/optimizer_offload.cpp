#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/strategy.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// Optimizer states and gradient shards in host memory, Adam on the node's cores (ZeRO-Offload, arXiv 2101.06840).
class OptimizerOffload final : public Strategy {
 public:
  std::string name() const override { return "optimizer-offload"; }
  std::string summary() const override { return "optimizer states in host memory, Adam on the CPU"; }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    if (context.plan->optimizer_offload == Offload::cpu && context.plan->zero == 0) {
      return {{"optimizer offload needs ZeRO: stage 0 keeps whole states on every GPU", {{"zero", 0}}, "zero: 3"}};
    }
    return {};
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->optimizer_offload == Offload::none) {
      return;
    }
    for (BlockTemplate& block : graph.templates) {
      if (block.kind == BlockKind::optimizer) {
        move_optimizer(context, block);
        continue;
      }
      for (Body& body : block.bodies) {
        move_gradients(*context.framework, graph.mesh, block, body);
      }
    }
  }

 private:
  static std::int64_t whole(double bytes) { return static_cast<std::int64_t>(bytes); }

  /// The running sum of a shard comes back, takes the micro-batch's gradient in and goes out again; the last
  /// micro-batch sends it once more in fp32 (DeepSpeed stage3.py, partition_grads,
  /// _offload_grad_partition_at_boundary).
  static void move_gradients(const spec::Framework& framework, const Mesh& mesh, BlockTemplate& block, Body& body) {
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
      const auto flat = [&](const std::string& name, double bytes, Space space) {
        return block.add({.name = name + "_" + op.name,
                          .shape = {{.dim = Dim::elements, .size = elements}},
                          .element_bytes = whole(bytes),
                          .space = space,
                          .kind = MemoryKind::gradients,
                          .persistent = space == Space::host,
                          .shared = space == Space::host});
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
      const TensorId kept = flat("kept", framework.offload_gradient_boundary_d2h_bytes.value, Space::host);
      Op widen{.name = "widen_" + op.name,
               .work = ElementwiseWork{.traffic = {{last, 6.0}}, .launches = 1},
               .writes = {last},
               .stream = op.stream,
               .when = When::last_micro_batch};
      Op offload_last = copy("offload_last", last, kept, Stream::device_to_host);
      offload_last.when = When::last_micro_batch;
      if (reduces_last) {
        widen.reads = op.writes;
        out.insert(out.end(), {op, std::move(widen), std::move(offload_last)});
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
      out.insert(out.end(), {op, std::move(widen), std::move(offload_last), offload});
    }
    body.ops = std::move(out);
  }

  static void move_optimizer(const PlanContext& context, BlockTemplate& block) {
    const spec::Framework& framework = *context.framework;
    HostWork work{.node_rate = framework.host_adam_rate.value};
    std::vector<TensorId> from;
    std::vector<TensorId> to;
    for (std::size_t i = 0, count = block.tensors.size(); i < count; ++i) {
      if (block.tensors[i].kind != MemoryKind::optimizer_states) {
        continue;
      }
      Tensor& states = block.tensors[i];
      states.space = Space::host;
      states.element_bytes = whole(framework.host_bytes_per_parameter.value);
      work.traffic.push_back({TensorId(i), framework.host_adam_traffic.value});
      Tensor updated = states;
      updated.name = states.find(Dim::experts) != nullptr ? "updated_experts_on_host" : "updated_on_host";
      updated.element_bytes = whole(framework.offload_weight_h2d_bytes.value);
      updated.kind = MemoryKind::weights;
      updated.shared = true;
      Tensor weights = updated;
      weights.name = states.find(Dim::experts) != nullptr ? "updated_experts_on_gpu" : "updated_on_gpu";
      weights.space = Space::gpu;
      from.push_back(block.add(std::move(updated)));
      to.push_back(block.add(std::move(weights)));
    }
    ULYSIM_CHECK(!from.empty(), "no optimizer states to move");
    Body& update = block.body(Phase::update);
    Op& adam = update.ops.front();
    adam.work = std::move(work);
    adam.stream = Stream::host_work;
    adam.host_waits = true;
    adam.writes.insert(adam.writes.end(), from.begin(), from.end());
    if (context.plan->parameter_offload != Offload::none) {
      return;  // the weights stay on the host
    }
    Op copy{.name = "return_updated_weights",
            .work = CopyWork{},
            .reads = std::move(from),
            .writes = std::move(to),
            .stream = Stream::host_to_device,
            .purpose = Purpose::optimizer_offload,
            .host_waits = true};
    update.ops.insert(update.ops.begin() + 1, std::move(copy));
    for (std::size_t i = 2; i < update.ops.size(); ++i) {
      // What hands the weights on reads the copy on the GPU.
      update.ops[i].after.emplace_back(1);
    }
  }
};

}  // namespace

const Strategy& optimizer_offload_strategy() {
  static const OptimizerOffload strategy;
  return strategy;
}

}  // namespace ulysim::strategies
