#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/strategies/rewrite.h"
#include "sim/strategies/zero_parts.h"
#include "sim/workload/training_step.h"

namespace ulysim::strategies {

using namespace workload;

namespace {

Op reduction(const std::string& name, CollectiveKind kind, AxisSet axes) {
  return {.name = name,
          .work = CollectiveWork{.kind = kind, .axes = axes},
          .stream = Stream::zero_reduce,
          .purpose = Purpose::gradients};
}

/// An accumulation, as far as it is put together.
struct Accumulation {
  Op op{};
  std::int64_t elements{};
  void take(const Op& from, std::size_t index, std::int64_t size) {
    op.reads.push_back(from.reads[index]);
    op.writes.push_back(from.writes[index]);
    auto& work = std::get<ElementwiseWork>(op.work);
    work.traffic.push_back(std::get<ElementwiseWork>(from.work).traffic[index]);
    ++work.launches;
    elements += size;
  }
};

class GradientPass {
 public:
  GradientPass(const PlanContext& context, const OpGraph& graph, BlockTemplate& block)
      : context_(context),
        mesh_(graph.mesh),
        block_(block),
        framework_(*context.framework),
        stage_(context.plan->zero),
        bucket_(reduce_bucket(context, graph)),
        tied_(context.model->tied_embeddings && mesh_.size(MeshAxis::pipeline) == 1) {}

  /// Elements of the largest group of reductions with no kernel between them.
  std::int64_t run() {
    for (Body& body : block_.bodies) {
      if (tied_ && stage_ >= 2 && block_.kind == BlockKind::embedding) {
        add_tied(body);
      }
      if (stage_ >= 2) {
        form_buckets(body);
      }
      reduce(body);
    }
    return largest_;
  }

 private:
  Tensor& at(TensorId id) { return block_.tensor(id); }

  [[nodiscard]] bool accumulates(const Op& op) const {
    return !op.writes.empty() && block_.tensor(op.writes[0]).persistent &&
           block_.tensor(op.writes[0]).kind == MemoryKind::gradients &&
           std::holds_alternative<ElementwiseWork>(op.work);
  }

  /// Whether the embedding reduces this gradient of the head, with its own.
  [[nodiscard]] bool left_to_embedding(TensorId total) const {
    return tied_ && block_.kind == BlockKind::head && block_.tensor(total).shared;
  }

  /// A table that embedding and head share has one gradient, complete when both have added to it (autograd accumulates
  /// it once). What the head has found waits as it is for the embedding's.
  void add_tied(Body& body) {
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      if (!accumulates(body.ops[i])) {
        continue;
      }
      const auto table = std::find_if(body.ops[i].reads.begin(), body.ops[i].reads.end(),
                                      [&](TensorId id) { return at(id).find(Dim::vocab) != nullptr; });
      if (table == body.ops[i].reads.end()) {
        continue;
      }
      const TensorId own = *table;
      Tensor sum = like(at(own), "d_w_tied");
      sum.port = Port::tied_input;
      const TensorId tied = block_.add(std::move(sum));
      replace_read(body.ops[i], own, tied);
      const double bytes = 3.0 * static_cast<double>(at(own).element_bytes);  // two reads, one write
      body.ops.insert(body.ops.begin() + static_cast<std::ptrdiff_t>(i),
                      {.name = "add_tied",
                       .work = ElementwiseWork{.traffic = {{own, bytes}}, .launches = 1},
                       .reads = {own},
                       .writes = {tied}});
      return;
    }
  }

  /// Accumulations that are reduced together: those of a block in one, where units are reduced whole; else what fits
  /// into a bucket, a larger tensor alone.
  void form_buckets(Body& body) {
    const bool whole_units = framework_.gather_unit.value == spec::GatherUnit::layer;
    const auto joins = [&](const Op& op) {
      return whole_units && accumulates(op) && !is_placed_by_expert(at(op.writes[0]));
    };
    const std::int64_t most = whole_units ? std::numeric_limits<std::int64_t>::max() : bucket_;
    std::int64_t waiting = std::count_if(body.ops.begin(), body.ops.end(), joins);
    std::vector<Accumulation> joined;
    std::vector<Op> out;
    for (Op& op : body.ops) {
      if (!accumulates(op)) {
        out.push_back(std::move(op));
        continue;
      }
      if (joins(op)) {
        add_up(op, most, joined);
        --waiting;
        if (waiting == 0) {
          append(joined, out);
        }
        continue;
      }
      std::vector<Accumulation> own;
      add_up(op, most, own);
      append(own, out);
    }
    body.ops = std::move(out);
  }

  static void append(std::vector<Accumulation>& parts, std::vector<Op>& out) {
    for (Accumulation& part : parts) {
      out.push_back(std::move(part.op));
    }
  }

  /// The gradients of `op` behind those of `parts`, none of which but single tensors is larger than `most`.
  void add_up(const Op& op, std::int64_t most, std::vector<Accumulation>& parts) {
    for (std::size_t k = 0; k < op.writes.size(); ++k) {
      if (left_to_embedding(op.writes[k])) {
        at(op.reads[k]).port = Port::tied_output;
        continue;
      }
      const std::int64_t size = local_elements(at(op.reads[k]), mesh_);
      // Norms and biases, which stand for many small tensors along the way, ask for no bucket of their own.
      const bool small = at(op.reads[k]).find(Dim::elements) != nullptr;
      if (parts.empty() || (!small && parts.back().elements > most - size)) {
        Op& part = parts.emplace_back(Accumulation{.op = op}).op;
        part.name += parts.size() > 1 ? fmt::format("_{}", parts.size() - 1) : "";
        part.reads.clear();
        part.writes.clear();
        part.work = ElementwiseWork{.launches = 0};
        part.release = {};
      }
      parts.back().take(op, k, size);
    }
    ULYSIM_CHECK(!parts.empty(), "{} is left with nothing to add up", op.name);
    parts.back().op.release.insert(op.release);
  }

  /// Where gradients are accumulated: stages 2 and 3 scatter every micro-batch's, stages 0 and 1 reduce the
  /// accumulated ones once, at the last micro-batch.
  void reduce(Body& body) {
    std::vector<Op> out;
    std::size_t begin = 0;  // behind the group before, in `out`
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      Op& op = body.ops[i];
      if (!accumulates(op)) {
        out.push_back(std::move(op));
        continue;
      }
      const Sharing sharing = sharing_of(mesh_, at(op.writes[0]));
      if (sharing.all().empty()) {
        out.push_back(std::move(op));  // each rank has experts that no other has
      } else if (stage_ >= 2) {
        elements += scatter_before(op, sharing, out);
        out.push_back(std::move(op));
        if (i + 1 == body.ops.size() || !accumulates(body.ops[i + 1])) {
          hold_up(begin, out);
          largest_ = std::max(largest_, elements);
          begin = out.size();
          elements = 0;
        }
      } else {
        out.push_back(op);
        reduce_after(op, sharing, out);
      }
    }
    body.ops = std::move(out);
  }

  /// The last kernel before a group of reductions starts when few enough groups are on their way: those behind it so
  /// do not pile up gradients.
  void hold_up(std::size_t begin, std::vector<Op>& out) const {
    if (!framework_.reductions_in_flight || !overlaps()) {
      return;
    }
    const auto kernel = std::find_if(out.rbegin(), out.rend() - static_cast<std::ptrdiff_t>(begin), [](const Op& op) {
      return op.stream == Stream::compute && op.acquire == CreditPool::none;
    });
    const auto last = std::find_if(out.rbegin(), out.rend() - static_cast<std::ptrdiff_t>(begin),
                                   [](const Op& op) { return is_collective(op) && op.purpose == Purpose::gradients; });
    if (kernel != out.rend() - static_cast<std::ptrdiff_t>(begin)) {
      kernel->acquire = CreditPool::reductions;
      last->release.insert(CreditPool::reductions);
    }
  }

  [[nodiscard]] bool overlaps() const { return stage_ == 3 || framework_.overlap_gradient_reduction.value != 0; }

  /// FSDP2 copies gradients into one flat input, which also casts them, before compute goes on (PyTorch
  /// fsdp/_fully_shard/_fsdp_collectives.py foreach_reduce).
  [[nodiscard]] bool copies_in() const { return framework_.sharding_copies_compute.value != 0; }

  /// The gradient as it travels; `cast` makes it where its type is another, or where it is copied. What fits into the
  /// bucket is counted with that.
  TensorId on_the_wire(TensorId id, Op& cast, bool in_bucket) {
    const std::int64_t held = at(id).element_bytes;
    const std::int64_t wire = gradient_wire_bytes(context_);
    if (wire == held && !copies_in()) {
      return id;
    }
    cast.reads.push_back(id);
    std::get<ElementwiseWork>(cast.work).traffic.push_back({id, static_cast<double>(held + wire)});
    if (wire == held) {
      return id;
    }
    Tensor other = like(at(id), at(id).name + "_wire");
    other.element_bytes = wire;
    other.kind = MemoryKind::gradients;
    other.persistent = other.shared = in_bucket;
    cast.writes.push_back(block_.add(std::move(other)));
    return cast.writes.back();
  }

  /// All of it on the reduction's own stream, so that backward goes on (DeepSpeed stage3.py,
  /// reduce_and_partition_stream; FSDP's post-backward stream); without overlap what computes waits for it.
  std::int64_t scatter_before(Op& op, const Sharing& sharing, std::vector<Op>& out) {
    const Stream stream = overlaps() ? Stream::zero_reduce : Stream::compute;
    Op cast{.name = "cast_" + op.name,
            .work = ElementwiseWork{.launches = 1},
            .stream = copies_in() ? Stream::compute : stream,
            .region = op.region};
    Op scatter = reduction("scatter_" + op.name, CollectiveKind::reduce_scatter, sharing.shard);
    Op add_up = reduction("add_up_" + op.name, CollectiveKind::all_reduce, sharing.replicas);
    op.stream = stream;
    std::int64_t elements = 0;
    for (const TensorId id : op.reads) {
      elements += local_elements(at(id), mesh_);
    }
    const bool in_bucket =
        elements <= bucket_ && framework_.reduce_bucket_kept.value + framework_.reduce_bucket_transient.value >= 1.0;
    for (const TensorId id : std::vector<TensorId>(op.reads)) {
      TensorId sent = on_the_wire(id, cast, in_bucket);
      const std::string name = at(id).name;
      if (!sharing.shard.empty()) {
        Tensor part = like(at(sent), name + "_shard");
        shard(part, sharing.shard);
        part.partial = sharing.replicas;
        scatter.reads.push_back(sent);
        sent = block_.add(std::move(part));
        scatter.writes.push_back(sent);
      }
      if (!sharing.replicas.empty()) {
        Tensor sum = like(at(sent), name + "_sum");
        sum.partial = {};
        add_up.reads.push_back(sent);
        sent = block_.add(std::move(sum));
        add_up.writes.push_back(sent);
      }
      replace_read(op, id, sent);
    }
    for (const TensorId id : op.writes) {
      shard(at(id), sharing.shard);
      at(id).partial = {};
    }
    for (Op* step : {&cast, &scatter, &add_up}) {
      if (!step->reads.empty()) {
        out.push_back(std::move(*step));
      }
    }
    return elements;
  }

  void reduce_after(const Op& op, const Sharing& sharing, std::vector<Op>& out) {
    const bool cuts = stage_ == 1 && !sharing.shard.empty();
    Op reduce = reduction("reduce_" + op.name, cuts ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                          cuts ? sharing.shard : sharing.all());
    Op add_up = reduction("add_up_" + op.name, CollectiveKind::all_reduce, sharing.replicas);
    Op cast{.name = "cast_" + op.name, .work = ElementwiseWork{.launches = 1}};
    for (const TensorId id : op.writes) {
      if (left_to_embedding(id)) {
        continue;
      }
      Tensor reduced = at(id);
      reduced.name += "_reduced";
      reduced.partial = {};
      reduced.shared = true;  // in place: the accumulated gradient's own storage
      if (cuts) {
        shard(reduced, sharing.shard);
      }
      if (cuts && !sharing.replicas.empty()) {
        Tensor summand = reduced;
        summand.name += "_here";
        summand.partial = sharing.replicas;
        const TensorId part = block_.add(std::move(summand));
        reduce.writes.push_back(part);
        add_up.reads.push_back(part);
        add_up.writes.push_back(block_.add(std::move(reduced)));
      } else {
        reduce.writes.push_back(block_.add(std::move(reduced)));
      }
      reduce.reads.push_back(on_the_wire(id, cast, false));
    }
    for (Op* step : {&cast, &reduce, &add_up}) {
      if (!step->reads.empty()) {
        step->when = When::last_micro_batch;
        out.push_back(std::move(*step));
      }
    }
  }

  const PlanContext& context_;
  const Mesh& mesh_;
  BlockTemplate& block_;
  const spec::Framework& framework_;
  std::int64_t stage_;
  std::int64_t bucket_;
  bool tied_;
  std::int64_t largest_{};
};

/// The reduction of all gradients of an optimizer's parameters, as a block of its own before it.
BlockTemplate whole_reduction(const PlanContext& context, const Mesh& mesh, const BlockTemplate& optimizer) {
  BlockTemplate block{.name = "gradients_of_" + optimizer.name, .kind = BlockKind::boundary, .instances = 1};
  for (const Tensor& states : optimizer.tensors) {
    const Sharing sharing = sharing_of(mesh, states);
    if (states.kind != MemoryKind::optimizer_states || sharing.all().empty()) {
      continue;
    }
    const bool experts = states.find(Dim::experts) != nullptr;
    Tensor sums = states;
    sums.name = experts ? "expert_gradients" : "gradients";
    sums.kind = MemoryKind::gradients;
    sums.element_bytes = static_cast<std::int64_t>(context.framework->gradient_bytes.value);
    sums.partial = sharing.all();
    sums.shared = true;  // the accumulated gradients' own storage; what travels is cast bucket by bucket
    Tensor sent = sums;
    sent.name += "_wire";
    sent.element_bytes = gradient_wire_bytes(context);
    Tensor reduced = sums;
    reduced.name += "_reduced";
    reduced.partial = {};
    const bool cuts = context.plan->zero == 1 && !sharing.shard.empty();
    if (cuts) {
      shard(reduced, sharing.shard);
    }
    std::vector<Op>& ops = block.body(Phase::update).ops;
    const bool casts = sent.element_bytes != sums.element_bytes;
    const auto traffic = static_cast<double>(sums.element_bytes + sent.element_bytes);
    TensorId from = block.add(std::move(sums));
    if (casts) {
      const TensorId wire = block.add(std::move(sent));
      ops.push_back({.name = "cast_" + block.tensor(from).name,
                     .work = ElementwiseWork{.traffic = {{from, traffic}}, .launches = 1},
                     .reads = {from},
                     .writes = {wire}});
      from = wire;
    }
    Op reduce = reduction(experts ? "reduce_expert_gradients" : "reduce_gradients",
                          cuts ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                          cuts ? sharing.shard : sharing.all());
    reduce.reads = {from};
    if (cuts && !sharing.replicas.empty()) {
      Tensor summand = reduced;
      summand.name += "_here";
      summand.partial = sharing.replicas;
      const TensorId part = block.add(std::move(summand));
      reduce.writes = {part};
      ops.push_back(std::move(reduce));
      reduce = reduction(experts ? "add_up_expert_gradients" : "add_up_gradients", CollectiveKind::all_reduce,
                         sharing.replicas);
      reduce.reads = {part};
    }
    reduce.writes = {block.add(std::move(reduced))};
    ops.push_back(std::move(reduce));
  }
  return block;
}

}  // namespace

void name_replicas(const Mesh& mesh, BlockTemplate& block) {
  if (mesh.replicate == 1) {
    return;
  }
  for (Tensor& tensor : block.tensors) {
    const AxisSet axes = mesh.on_grid(tensor.partial);
    const bool of_samples = std::any_of(kAllAxes.begin(), kAllAxes.end(), [&](MeshAxis axis) {
      return axes.contains(axis) && axis != MeshAxis::tensor && axis != MeshAxis::pipeline;
    });
    if (tensor.kind != MemoryKind::gradients || !of_samples) {
      continue;
    }
    AxisSet named = sharing_of(mesh, tensor).all();
    if (tensor.partial.contains(MeshAxis::tensor)) {
      named.insert(MeshAxis::tensor);
    }
    tensor.partial = named;
  }
}

std::int64_t reduce_gradients(const PlanContext& context, const OpGraph& graph, BlockTemplate& block) {
  return GradientPass(context, graph, block).run();
}

bool reduces_before_update(const PlanContext& context) {
  return context.plan->zero < 2 && context.framework->overlap_gradient_reduction.value == 0;
}

void reduce_before_update(const PlanContext& context, OpGraph& graph) {
  std::vector<std::optional<TemplateId>> reductions(graph.templates.size());
  for (std::size_t i = 0, count = graph.templates.size(); i < count; ++i) {
    if (graph.templates[i].kind == BlockKind::optimizer) {
      BlockTemplate block = whole_reduction(context, graph.mesh, graph.templates[i]);
      if (!block.body(Phase::update).ops.empty()) {
        reductions[i] = TemplateId(graph.templates.size());
        graph.templates.push_back(std::move(block));
      }
    }
  }
  for (Role& role : graph.roles) {
    std::int32_t last = 0;
    for (const Instance& instance : role.program) {
      last = std::max(last, instance.block);
    }
    for (std::size_t i = 0; i < role.program.size(); ++i) {
      const std::size_t index = role.program[i].block_template.index();
      if (index < reductions.size() && reductions[index]) {
        Instance instance = role.program[i];
        instance.block_template = *reductions[index];
        instance.block = last + 1;
        role.program.insert(role.program.begin() + static_cast<std::ptrdiff_t>(i), instance);
        break;
      }
    }
  }
}

std::int64_t reduce_bucket(const PlanContext& context, const OpGraph& graph) {
  const Mesh& mesh = context.plan->mesh;
  const std::int64_t whole =
      context.plan->adapters ? trained_elements(graph).dense : count_parameters(*context.model).total;
  std::int64_t bucket = context.framework->reduce_bucket(context.model->hidden);
  if (context.framework->gather_unit.value == spec::GatherUnit::layer) {
    bucket = 0;
    for (std::size_t layer = 0; layer < context.model->layer_specs.size(); ++layer) {
      const LayerParameters each = layer_parameters(*context.model, layer);
      const std::int64_t experts = each.experts / mesh.expert;
      // Experts that others share are a unit of their own.
      const std::int64_t unit = mesh.expert == 1 ? each.total() : std::max(each.total() - each.experts, experts);
      bucket = std::max(bucket, unit / mesh.size(MeshAxis::tensor));
    }
  }
  return std::min(bucket, whole / (mesh.size(MeshAxis::tensor) * mesh.size(MeshAxis::pipeline)));
}

std::int64_t gradient_wire_bytes(const PlanContext& context) {
  const bool sequence_parallel = context.plan->mesh.size(AxisSet{MeshAxis::ulysses, MeshAxis::ring}) > 1;
  return static_cast<std::int64_t>(sequence_parallel ? context.framework->sequence_parallel_gradient_wire_bytes.value
                                                     : context.framework->gradient_wire_bytes.value);
}

}  // namespace ulysim::strategies
