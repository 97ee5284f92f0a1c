#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/stages.h"
#include "sim/strategies/strategy.h"
#include "sim/workload/training_step.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

/// The port of a template; InternalError when it has none of the kind.
const Tensor& port_of(const BlockTemplate& block, Port port) {
  for (const Tensor& tensor : block.tensors) {
    if (tensor.port == port) {
      return tensor;
    }
  }
  throw InternalError(fmt::format("{} lacks a port of its chain", block.name));
}

/// Cuts the chain into virtual stages. Where two meet, each gets an end: a block of its own that hands the activation
/// over and takes its gradient back. Later passes shard the ends like every other block, and so the messages.
class Assignment {
 public:
  Assignment(const PlanContext& context, OpGraph& graph)
      : graph_(graph),
        stages_(context.plan->mesh.size(MeshAxis::pipeline)),
        host_waits_(context.framework->pipeline_exchange_drains_host.value != 0 && context.plan->virtual_stages == 1),
        kept_outputs_(context.framework->pipeline_keeps_outputs.value != 0 && !context.plan->tiled_loss
                          ? context.plan->accumulation
                          : 0),
        receive_buffers_(context.framework->pipeline_receive_buffers.value != 0 ? context.plan->accumulation : 0),
        parts_(stages_ * context.plan->virtual_stages) {
    const std::vector<std::int64_t> layers = layers_of_parts(context.model->layers, parts_);
    for (std::int64_t part = 0; part < parts_; ++part) {
      // The embedding stands with the first layers and the head with the last.
      const bool first = part == 0;
      const bool last = part + 1 == parts_;
      const std::int64_t blocks = layers[static_cast<std::size_t>(part)] + (first ? 1 : 0) + (last ? 1 : 0);
      part_of_block_.insert(part_of_block_.end(), static_cast<std::size_t>(blocks), static_cast<std::int32_t>(part));
    }
  }

  void run() {
    const Role whole = std::move(graph_.roles.front());
    graph_.roles.clear();
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      graph_.roles.push_back({.name = fmt::format("stage {}", stage), .stage = stage});
    }
    add_ends(whole);
    share_embedding(whole);
    keep_outputs();
    std::size_t begin = 0;
    while (begin < whole.program.size()) {
      const Instance& first = whole.program[begin];
      if (first.phase == Phase::update) {
        add_optimizers(whole, first);
        ++begin;
        continue;
      }
      std::size_t end = begin;
      while (end < whole.program.size() && same_cell(first, whole.program[end])) {
        ++end;
      }
      add_cell(whole, begin, end);
      begin = end;
    }
  }

 private:
  [[nodiscard]] std::int32_t part_of(const Instance& instance) const {
    return part_of_block_[static_cast<std::size_t>(instance.block)];
  }
  [[nodiscard]] bool same_cell(const Instance& a, const Instance& b) const {
    return a.phase == b.phase && a.micro_batch == b.micro_batch && b.phase != Phase::update && part_of(a) == part_of(b);
  }
  [[nodiscard]] std::uint32_t role_of(std::int64_t part) const { return static_cast<std::uint32_t>(part % stages_); }

  /// One end: `out` sends the activation on and receives its gradient, the other way round for the end that takes in.
  TemplateId add_end(std::int64_t part, PipelineWork::Side forward, const BlockTemplate& neighbour) {
    const bool sends = forward == PipelineWork::Side::send;
    const std::int64_t boundary = sends ? part : part - 1;
    const std::uint32_t peer = role_of(sends ? part + 1 : part - 1);
    BlockTemplate end{.name = fmt::format("{}_{}", sends ? "to_stage" : "from_stage", sends ? part + 1 : part - 1),
                      .kind = BlockKind::boundary,
                      .instances = 1};
    const auto add = [&](Phase phase, const char* tensor, Port of, Port as) {
      Tensor moved = like(port_of(neighbour, of), tensor);
      moved.port = as;
      const TensorId id = end.add(std::move(moved));
      const bool send = (phase == Phase::forward) == sends;
      const bool ahead = phase == Phase::forward;
      Op op{.name = send ? "send" : "receive",
            .work = PipelineWork{.side = send ? PipelineWork::Side::send : PipelineWork::Side::receive,
                                 .peer_role = peer,
                                 .tag = 2 * boundary + (ahead ? 0 : 1)},
            .stream = ahead ? (send ? Stream::forward_send : Stream::forward_receive)
                            : (send ? Stream::backward_send : Stream::backward_receive),
            .purpose = Purpose::pipeline,
            // The host waits at the end of each exchange, which is the end that receives; interleaved stages send and
            // receive one by one and do not (Megatron-LM pipeline_parallel/p2p_communication.py, batch_p2p_sync).
            .host_waits = !send && host_waits_};
      (send ? op.reads : op.writes).push_back(id);
      end.body(phase).ops.push_back(std::move(op));
      if (!send && receive_buffers_ > 0) {
        keep_buffers(end, id);
      }
    };
    if (sends) {
      add(Phase::forward, "x", Port::output, Port::input);
      add(Phase::backward, "d_x", Port::grad_output, Port::grad_input);
    } else {
      add(Phase::forward, "y", Port::input, Port::output);
      add(Phase::backward, "d_y", Port::grad_input, Port::grad_output);
    }
    graph_.templates.push_back(std::move(end));
    return TemplateId(graph_.templates.size() - 1);
  }

  /// What is received comes into buffers, one for each micro-batch, that are there all the time (PyTorch
  /// distributed/pipelining/stage.py, args_recv_info and grad_recv_info).
  void keep_buffers(BlockTemplate& end, TensorId received) const {
    Tensor buffers = like(end.tensor(received), end.tensor(received).name + "_buffers");
    buffers.element_bytes *= receive_buffers_;
    buffers.kind = MemoryKind::communication_buffers;
    buffers.persistent = true;
    end.tensor(received).shared = true;
    end.add(std::move(buffers));
  }

  /// The last stage holds the logits of all micro-batches until the step ends, to hand them over as one.
  void keep_outputs() {
    for (BlockTemplate& block : graph_.templates) {
      const auto logits = std::find_if(block.tensors.begin(), block.tensors.end(), [](const Tensor& tensor) {
        return tensor.kind == MemoryKind::logits && tensor.name == "logits";
      });
      if (kept_outputs_ == 0 || logits == block.tensors.end()) {
        continue;
      }
      Tensor outputs = like(*logits, "outputs_of_the_step");
      outputs.element_bytes *= kept_outputs_;
      outputs.persistent = true;
      block.add(std::move(outputs));
    }
  }

  void add_ends(const Role& whole) {
    ends_in_.resize(static_cast<std::size_t>(parts_));
    ends_out_.resize(static_cast<std::size_t>(parts_));
    std::vector<TemplateId> chain(part_of_block_.size());
    for (const Instance& instance : whole.program) {
      if (instance.phase != Phase::update) {
        chain[static_cast<std::size_t>(instance.block)] = instance.block_template;
      }
    }
    for (std::size_t block = 1; block < chain.size(); ++block) {
      const std::int64_t part = part_of_block_[block];
      if (part_of_block_[block - 1] != part) {
        const BlockTemplate before = graph_.templates[chain[block - 1].index()];
        const BlockTemplate behind = graph_.templates[chain[block].index()];
        ends_out_[static_cast<std::size_t>(part - 1)] = add_end(part - 1, PipelineWork::Side::send, before);
        ends_in_[static_cast<std::size_t>(part)] = add_end(part, PipelineWork::Side::receive, behind);
      }
    }
  }

  void add_cell(const Role& whole, std::size_t begin, std::size_t end) {
    const Instance& first = whole.program[begin];
    const std::int32_t part = part_of(first);
    std::vector<Instance>& program = graph_.roles[role_of(part)].program;
    std::int32_t low = first.block;
    std::int32_t high = first.block;
    for (std::size_t i = begin; i < end; ++i) {
      low = std::min(low, whole.program[i].block);
      high = std::max(high, whole.program[i].block);
    }
    const std::int32_t shift = 2 * part;  // two ends stand between each part and the next
    const auto add = [&](Instance instance, std::int32_t block) {
      instance.block = block + shift;
      instance.virtual_stage = part;
      program.push_back(instance);
    };
    const auto add_end_of = [&](const std::vector<TemplateId>& ends, std::int32_t block) {
      Instance instance = first;
      instance.block_template = ends[static_cast<std::size_t>(part)];
      add(instance, block);
    };
    const bool takes_in = part > 0;
    const bool hands_on = part + 1 < parts_;
    const bool forward = first.phase == Phase::forward;
    if (forward ? takes_in : hands_on) {
      add_end_of(forward ? ends_in_ : ends_out_, forward ? low - 1 : high + 1);
    }
    for (std::size_t i = begin; i < end; ++i) {
      add(whole.program[i], whole.program[i].block);
    }
    if (forward ? hands_on : takes_in) {
      add_end_of(forward ? ends_out_ : ends_in_, forward ? high + 1 : low - 1);
    }
  }

  /// Tied embeddings: the last stage holds a copy of the table, and before the update the two stages exchange what each
  /// has gathered for it (Megatron-LM, distributed/finalize_model_grads.py: an all-reduce of two, whose volume this
  /// is).
  void share_embedding(const Role& whole) {
    for (const Instance& instance : whole.program) {
      BlockTemplate& block = graph_.templates[instance.block_template.index()];
      if (block.kind != BlockKind::head || instance.phase != Phase::forward) {
        continue;
      }
      for (const Tensor& tensor : std::vector<Tensor>(block.tensors)) {
        if (tensor.shared && tensor.kind == MemoryKind::gradients) {
          add_exchange(tensor);
        }
      }
      for (Tensor& tensor : graph_.templates[instance.block_template.index()].tensors) {
        tensor.shared = false;
      }
      return;
    }
  }

  void add_exchange(const Tensor& gradient) {
    const std::array<std::uint32_t, 2> roles{0, role_of(parts_ - 1)};
    for (std::size_t side = 0; side < roles.size(); ++side) {
      BlockTemplate block{
          .name = fmt::format("shared_embedding_{}", side), .kind = BlockKind::boundary, .instances = 1};
      Tensor own = like(gradient, "gathered_here");
      own.kind = MemoryKind::communication_buffers;
      Tensor other = own;
      other.name = "gathered_there";
      own.persistent = own.shared = true;  // the accumulated gradient's own storage
      const double bytes = 3.0 * static_cast<double>(own.element_bytes);
      const TensorId own_id = block.add(std::move(own));
      const TensorId other_id = block.add(std::move(other));
      const auto message = [&](PipelineWork::Side end, std::size_t tag) {
        return PipelineWork{
            .side = end, .peer_role = roles.at(1 - side), .tag = 2 * parts_ + static_cast<std::int64_t>(tag)};
      };
      block.body(Phase::update).ops = {{.name = "send_shared",
                                        .work = message(PipelineWork::Side::send, side),
                                        .reads = {own_id},
                                        .stream = Stream::backward_send,
                                        .purpose = Purpose::gradients},
                                       {.name = "receive_shared",
                                        .work = message(PipelineWork::Side::receive, 1 - side),
                                        .writes = {other_id},
                                        .stream = Stream::backward_receive,
                                        .purpose = Purpose::gradients},
                                       {.name = "add_shared",
                                        .work = ElementwiseWork{.traffic = {{other_id, bytes}}},
                                        .reads = {other_id},
                                        .writes = {own_id},
                                        .after = {OpId(0)}}};
      graph_.templates.push_back(std::move(block));
      exchanges_.emplace_back(roles.at(side), TemplateId(graph_.templates.size() - 1));
    }
  }

  /// Elements of the weights that a stage trains.
  [[nodiscard]] TrainedElements trained_by(const Role& role) const {
    std::vector<bool> counted(part_of_block_.size() + static_cast<std::size_t>(2 * parts_) + 1, false);
    TrainedElements sum;
    for (const Instance& instance : role.program) {
      if (counted[static_cast<std::size_t>(instance.block)]) {
        continue;
      }
      counted[static_cast<std::size_t>(instance.block)] = true;
      for (const Tensor& tensor : graph_.of(instance).tensors) {
        if (tensor.parameter && !tensor.frozen && !tensor.shared) {
          (tensor.find(Dim::experts) != nullptr ? sum.of_experts : sum.dense) += global_elements(tensor);
        }
      }
    }
    return sum;
  }

  /// A tensor of the whole model's optimizer, as one that trains so much has it.
  static void cut_to(const TrainedElements& trained, Tensor& tensor) {
    std::int64_t& size = tensor.find(Dim::elements)->size;
    if (const Extent* experts = tensor.find(Dim::experts)) {
      size = std::max<std::int64_t>(1, trained.of_experts / experts->size);
      tensor.shared = trained.of_experts == 0;  // a stage of dense layers: holds nothing
    } else {
      size = tensor.persistent ? trained.dense : trained.dense + trained.of_experts;
    }
  }

  /// Each stage updates the weights that it holds.
  void add_optimizers(const Role& whole, const Instance& update) {
    const BlockTemplate model = graph_.templates[update.block_template.index()];
    ULYSIM_CHECK(&update == &whole.program.back(), "the update does not come last");
    const auto behind = static_cast<std::int32_t>(part_of_block_.size()) + static_cast<std::int32_t>(2 * parts_);
    for (const auto& [role, exchange] : exchanges_) {
      Instance instance = update;
      instance.block_template = exchange;
      instance.block = behind;
      graph_.roles[role].program.push_back(instance);
    }
    std::vector<std::pair<TrainedElements, TemplateId>> known;
    for (Role& role : graph_.roles) {
      const TrainedElements trained = trained_by(role);
      auto same = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == trained; });
      if (same == known.end()) {
        BlockTemplate own = model;
        for (Tensor& tensor : own.tensors) {
          cut_to(trained, tensor);
        }
        if (known.empty()) {
          graph_.templates[update.block_template.index()] = std::move(own);
          known.emplace_back(trained, update.block_template);
        } else {
          own.name += fmt::format("_{}", known.size());
          graph_.templates.push_back(std::move(own));
          known.emplace_back(trained, TemplateId(graph_.templates.size() - 1));
        }
        same = known.end() - 1;
      }
      Instance instance = update;
      instance.block_template = same->second;
      instance.block = behind + 1;
      role.program.push_back(instance);
    }
  }

  OpGraph& graph_;
  std::int64_t stages_;
  bool host_waits_;
  std::int64_t kept_outputs_;     ///< micro-batches
  std::int64_t receive_buffers_;  ///< of each message; 0: as they come
  std::int64_t parts_;
  std::vector<std::int32_t> part_of_block_;
  std::vector<TemplateId> ends_in_;                              ///< by part
  std::vector<TemplateId> ends_out_;                             ///< by part
  std::vector<std::pair<std::uint32_t, TemplateId>> exchanges_;  ///< by role, of a tied embedding's gradients
};

Infeasible reason(std::string text, const Plan& plan, std::string suggestion) {
  return {std::move(text),
          {{"pipeline", static_cast<double>(plan.mesh.size(MeshAxis::pipeline))},
           {"virtual_stages", static_cast<double>(plan.virtual_stages)},
           {"micro_batches", static_cast<double>(plan.accumulation)}},
          std::move(suggestion)};
}

/// Stage assignment: the first pass, so that all others see the stages' ends as blocks like any other.
class Pipeline final : public Strategy {
 public:
  std::string name() const override { return "pipeline"; }
  std::string summary() const override {
    return "layers cut into stages that hand micro-batches on (1F1B, interleaved)";
  }

  std::vector<Infeasible> check(const PlanContext& context) const override {
    std::vector<Infeasible> reasons;
    const Plan& plan = *context.plan;
    const std::int64_t p = plan.mesh.size(MeshAxis::pipeline);
    const std::int64_t v = plan.virtual_stages;
    const std::int64_t layers = context.model->layers;
    if (p == 1) {
      if (v > 1) {
        reasons.push_back(reason(fmt::format("virtual_stages {} of one stage", v), plan, "virtual_stages 1"));
      }
      return reasons;
    }
    if (layers < p * v) {
      reasons.push_back(reason(
          v > 1 ? fmt::format("{} layers are fewer than pipeline {} × virtual_stages {}", layers, p, v)
                : fmt::format("{} layers are fewer than pipeline {}", layers, p),
          plan, layers >= p ? fmt::format("virtual_stages {}", layers / p) : fmt::format("pipeline {}", layers)));
    }
    if (v > 1 && plan.accumulation % p != 0) {
      const std::int64_t up = (plan.accumulation + p - 1) / p * p;
      reasons.push_back(reason(
          fmt::format("interleaved stages need micro-batches in groups of pipeline {}, not {}", p, plan.accumulation),
          plan, fmt::format("gradient_accumulation {}, or virtual_stages 1", up)));
    }
    if (plan.zero >= 2) {
      // DeepSpeed, runtime/pipe/engine.py: "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism".
      reasons.push_back(reason(fmt::format("ZeRO-{} and pipeline {}: gradients or weights would be exchanged anew for "
                                           "every micro-batch; the frameworks refuse it",
                                           plan.zero, p),
                               plan, "zero: 1"));
    }
    return reasons;
  }

  void apply(const PlanContext& context, OpGraph& graph) const override {
    if (context.plan->mesh.size(MeshAxis::pipeline) > 1) {
      Assignment(context, graph).run();
    }
  }
};

}  // namespace

const Strategy& pipeline_strategy() {
  static const Pipeline strategy;
  return strategy;
}

}  // namespace ulysim::strategies
