#include "sim/workload/training_step.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/workload/attention_projection.h"
#include "sim/workload/attention_workspace.h"
#include "sim/workload/block_builder.h"
#include "sim/workload/feed_forward.h"
#include "sim/workload/mixture_of_experts.h"
#include "sim/workload/shape.h"

namespace ulysim::workload {

namespace {

/// What a layer's forward pass leaves for its backward pass.
struct LayerTensors {
  TensorId x{}, normed{}, norm_kept{}, o{}, lse{}, attention_out{}, x1{}, normed1{}, norm1_kept{};
  AttentionProjection::Outputs qkv{};
  BlockBuilder::Weight wo{}, small{};
};

const std::vector<Dim> kRows{Dim::batch, Dim::tokens};

class LayerBuilder {
 public:
  LayerBuilder(const Transformer& model, const StepOptions& options, BlockTemplate& block, const LayerSpec& spec,
               std::size_t layer)
      : b_(block_builder(model, options, block)),
        model_(model),
        costs_(options.costs),
        extents_(attention_extents(model)),
        parallel_(model.block_order == BlockOrder::parallel),
        one_norm_(parallel_ && model.norms.per_layer == 1),
        norms_(one_norm_ ? 1.0 : static_cast<double>(model.norms.per_layer) / 2.0) {
    mask_ = mask_of(spec, options);
    declare_weights(spec, layer_parameters(model, layer).total());
  }

  void build() {
    attention_forward();
    mlp_forward();
    mlp_backward();
    attention_backward();
  }

 private:
  static BlockBuilder block_builder(const Transformer& model, const StepOptions& options, BlockTemplate& block) {
    return {model, options, block};
  }

  void declare_weights(const LayerSpec& spec, std::int64_t parameters) {
    projection_.emplace(b_);
    std::vector<Extent> o = extents_.o;
    o.push_back({.dim = Dim::hidden, .size = model_.hidden});
    t_.wo = b_.linear_weight("w_o", o);
    if (spec.moe) {
      experts_.emplace(b_);
    } else {
      mlp_.emplace(b_, FeedForward::Spec{.width = model_.ffn});
    }
    std::int64_t matrices = 0;
    for (const Tensor& tensor : b_.block().tensors) {
      matrices += tensor.parameter ? global_elements(tensor) : 0;
    }
    // Norm weights and biases: in the books, too small to be worth ops of their own.
    t_.small = b_.weight("w_small", {{.dim = Dim::elements, .size = parameters - matrices}});
  }

  void attention_forward() {
    b_.in(Phase::forward);
    t_.x = b_.hidden("x", Port::input);
    t_.normed = b_.hidden("normed");
    t_.norm_kept = kept("norm_kept");
    b_.elementwise("norm", {t_.x, t_.small.value}, {t_.normed, t_.norm_kept}, {{t_.x, costs_.norm_forward * norms_}},
                   costs_.norm_launches);
    b_.scratch_like(t_.x, costs_.norm_forward_scratch);
    t_.qkv = projection_->forward(t_.normed);
    b_.in(Phase::forward, Region::core_attention);
    t_.o = b_.activation("o", extents_.o);
    t_.lse = b_.activation("lse", {{.dim = Dim::heads, .size = model_.heads}}, 4);
    b_.add({.name = "attention",
            .work =
                AttentionWork{
                    .implementation = b_.options().attention, .direction = kernel::Direction::forward, .mask = mask_},
            .reads = {t_.qkv.q, t_.qkv.k, t_.qkv.v},
            .writes = {t_.o, t_.lse},
            .purpose = Purpose::attention,
            .drains = b_.options().attention_synchronises});
    b_.in(Phase::forward);
    t_.attention_out = b_.hidden("attention_out");
    b_.linear("o_proj",
              {.x = t_.o, .w = t_.wo, .in_dims = dims_of(extents_.o), .out_dims = {Dim::hidden}, .target = "o_proj"},
              t_.attention_out);
    if (parallel_) {
      t_.x1 = t_.x;  // the MLP reads the layer's input too; both branches are added at once
      return;
    }
    t_.x1 = b_.hidden("x1");
    b_.elementwise("residual", {t_.x, t_.attention_out}, {t_.x1}, {{t_.x1, costs_.residual_forward}},
                   costs_.residual_launches);
  }

  void mlp_norm_forward() {
    if (one_norm_) {
      t_.normed1 = t_.normed;
      return;
    }
    t_.normed1 = b_.hidden("normed1");
    t_.norm1_kept = kept("norm1_kept");
    b_.elementwise("norm1", {t_.x1, t_.small.value}, {t_.normed1, t_.norm1_kept},
                   {{t_.x1, costs_.norm_forward * norms_}}, costs_.norm_launches);
    b_.scratch_like(t_.x1, costs_.norm_forward_scratch);
  }

  void mlp_forward() {
    mlp_norm_forward();
    std::vector<TensorId> added;
    if (experts_) {
      added = experts_->forward(t_.normed1);
    } else {
      b_.in(Phase::forward, Region::mlp);
      added.push_back(mlp_->forward(t_.normed1));
      b_.in(Phase::forward);
    }
    if (parallel_) {
      added.insert(added.begin(), t_.attention_out);
    }
    const auto adds = static_cast<std::int64_t>(added.size());
    added.insert(added.begin(), t_.x1);
    const TensorId y = b_.hidden("y", Port::output);
    b_.elementwise("residual1", added, {y}, {{y, costs_.residual_forward * static_cast<double>(adds)}},
                   costs_.residual_launches * adds);
  }

  void mlp_backward() {
    b_.in(Phase::backward, Region::mlp);
    d_y_ = b_.hidden("d_y", Port::grad_output);
    std::vector<TensorId> d_normed = experts_ ? experts_->backward(d_y_) : mlp_->backward(d_y_);
    b_.in(Phase::backward);
    b_.accumulate("accumulate_mlp", experts_ ? experts_->weights() : mlp_->weights());
    if (parallel_) {
      d_x1_ = d_y_;  // what comes in goes to both branches
      d_of_mlp_ = one_norm_ ? d_normed : std::vector<TensorId>{norm_backward_of_branch(std::move(d_normed))};
      return;
    }
    d_x1_ = b_.hidden("d_x1");
    if (costs_.norm_keeps_input) {
      d_normed.push_back(t_.x1);
    }
    d_normed.insert(d_normed.end(), {t_.norm1_kept, d_y_, t_.small.value});
    b_.elementwise("norm1_backward", d_normed, {d_x1_},
                   b_.fan_in({{d_y_, costs_.norm_backward * norms_ + costs_.residual_backward}}, d_normed),
                   costs_.norm_launches);
    b_.scratch_like(d_y_, costs_.norm_backward_scratch);
  }

  /// Of the MLP's own norm, where both branches have one.
  TensorId norm_backward_of_branch(std::vector<TensorId> d_normed) {
    const TensorId d_branch = b_.hidden("d_x_mlp");
    d_normed.insert(d_normed.end(), {t_.x, t_.norm1_kept, t_.small.value});
    b_.elementwise("norm1_backward", d_normed, {d_branch}, b_.fan_in({{t_.x, costs_.norm_backward * norms_}}, d_normed),
                   costs_.norm_launches);
    b_.scratch_like(t_.x, costs_.norm_backward_scratch);
    return d_branch;
  }

  void attention_backward() {
    TensorId d_o = b_.activation("d_o", extents_.o);
    const auto more = b_.linear_backward({{"o", t_.o, t_.wo, d_x1_, d_o, dims_of(extents_.o), {Dim::hidden}}});
    if (more.front()) {
      const std::vector<TensorId> parts{d_o, *more.front()};
      const TensorId sum = b_.activation("d_o_sum", extents_.o);
      b_.elementwise("d_o_add", parts, {sum}, b_.fan_in({}, parts), 1);
      d_o = sum;
    }
    const TensorId d_rq = b_.activation("d_rope_q", extents_.q);
    const TensorId d_rk = b_.activation("d_rope_k", extents_.k);
    const TensorId d_v = b_.activation("d_v", extents_.v);
    b_.in(Phase::backward, Region::core_attention);
    b_.add({.name = "attention_backward",
            .work =
                AttentionWork{
                    .implementation = b_.options().attention, .direction = kernel::Direction::backward, .mask = mask_},
            .reads = {t_.qkv.q, t_.qkv.k, t_.qkv.v, t_.o, t_.lse, d_o},
            .writes = {d_rq, d_rk, d_v, workspace()},
            .purpose = Purpose::attention});
    b_.in(Phase::backward);
    std::vector<TensorId> d_normed = projection_->backward({.q = d_rq, .k = d_rk, .v = d_v});
    const TensorId d_x = b_.hidden("d_x", Port::grad_input);
    d_normed.insert(d_normed.end(), d_of_mlp_.begin(), d_of_mlp_.end());
    d_normed.insert(d_normed.end(), {t_.x, t_.norm_kept, d_x1_, t_.small.value});
    const double adds = parallel_ ? 2.0 : 1.0;  // of the two residual gradients both end here
    b_.elementwise("norm_backward", d_normed, BlockBuilder::with_gradient({d_x}, t_.small),
                   b_.fan_in({{t_.x, costs_.norm_backward * norms_ + adds * costs_.residual_backward}}, d_normed),
                   costs_.norm_launches);
    b_.scratch_like(t_.x, costs_.norm_backward_scratch);
    std::vector<BlockBuilder::Weight> weights = projection_->weights();
    weights.insert(weights.end(), {t_.wo, t_.small});
    b_.accumulate("accumulate_attention", weights);
  }

  TensorId kept(const std::string& name) {
    return b_.activation(name, {{.dim = Dim::hidden, .size = model_.hidden}}, costs_.norm_saved);
  }
  /// The backward kernel's scratch, written for the op's own time. All of it scales with the query heads, so that
  /// sharding carries over.
  TensorId workspace() {
    const std::int64_t bytes = attention_workspace_bytes(b_.options().attention, model_.heads, model_.kv_heads);
    const TensorId id = b_.activation("attention_workspace", extents_.q, bytes);
    b_.block().tensor(id).kind = MemoryKind::attention_workspace;
    return id;
  }

  BlockBuilder b_;
  const Transformer& model_;
  const ElementwiseCosts& costs_;
  AttentionExtents extents_;
  bool parallel_;  ///< attention and MLP both read the layer's input (GPT-NeoX, Falcon)
  bool one_norm_;  ///< and the same norm of it
  double norms_;
  std::optional<AttentionProjection> projection_{};
  std::optional<FeedForward> mlp_{};
  std::optional<MixtureOfExperts> experts_{};
  Mask mask_{};
  LayerTensors t_{};
  TensorId d_y_{}, d_x1_{};
  std::vector<TensorId> d_of_mlp_{};  ///< of parallel branches: what the MLP adds to the input's gradient
};

Extent vocabulary(const Transformer& model, const StepOptions& options) {
  return {.dim = Dim::vocab, .size = model.vocab, .multiple = options.vocabulary_multiple};
}

/// Its storage is another's.
void share(BlockTemplate& block, const BlockBuilder::Weight& w) {
  block.tensor(w.value).shared = true;
  if (w.total) {
    block.tensor(*w.total).shared = true;
  }
}

void build_embedding(const Transformer& model, const StepOptions& options, BlockTemplate& block) {
  BlockBuilder b(model, options, block);
  const ParameterCount count = count_parameters(model);
  auto table = b.weight("w_embedding", {vocabulary(model, options), {.dim = Dim::hidden, .size = model.hidden}});
  auto small = b.weight(
      "w_small",
      {{.dim = Dim::elements,
        .size = std::max<std::int64_t>(1, count.position_embedding + count.embedding - model.vocab * model.hidden)}});
  if (count.position_embedding + count.embedding == model.vocab * model.hidden) {
    share(block, small);  // holds nothing
  }
  b.in(Phase::forward);
  b.host_time("load_batch", options.fixed_time_per_micro_step);
  const TensorId y = b.hidden("y", Port::output);
  b.elementwise("lookup", {table.value, small.value}, {y}, {{y, 4.0}}, 1);
  b.in(Phase::backward);
  const TensorId d_y = b.hidden("d_y", Port::grad_output);
  if (table.grad) {
    b.elementwise("lookup_backward", {d_y}, {*table.grad, *small.grad}, {{d_y, 4.0}, {*table.grad, 2.0}}, 2);
  } else {
    b.elementwise("end_of_backward", {d_y}, {}, {}, 0);  // nothing that is trained stands before the layers
  }
  b.accumulate("accumulate_embedding", {table, small});
}

void build_head(const Transformer& model, const StepOptions& options, BlockTemplate& block) {
  BlockBuilder b(model, options, block);
  const ElementwiseCosts& costs = options.costs;
  const ParameterCount count = count_parameters(model);
  const std::int64_t table = model.vocab * model.hidden;
  auto w = b.weight("w_head", {{.dim = Dim::hidden, .size = model.hidden}, vocabulary(model, options)});
  if (model.tied_embeddings) {
    share(block, w);
  }
  auto small = b.weight(
      "w_small", {{.dim = Dim::elements, .size = count.final_norm + count.head - (model.tied_embeddings ? 0 : table)}});
  const auto logits_like = [&](const std::string& name, std::int64_t bytes) {
    const TensorId id = b.activation(name, {vocabulary(model, options)}, bytes);
    block.tensor(id).kind = MemoryKind::logits;
    return id;
  };
  b.in(Phase::forward);
  const TensorId x = b.hidden("x", Port::input);
  const TensorId normed = b.hidden("normed");
  const TensorId kept = b.activation("norm_kept", {{.dim = Dim::hidden, .size = model.hidden}}, costs.norm_saved);
  b.elementwise("final_norm", {x, small.value}, {normed, kept}, {{x, costs.norm_forward}}, costs.norm_launches);
  b.scratch_like(x, costs.norm_forward_scratch);
  b.in(Phase::forward, Region::loss);
  const TensorId logits = logits_like("logits", 2);
  b.gemm("head", normed, w.value, logits, {.m = kRows, .n = {Dim::vocab}, .k = {Dim::hidden}});
  const TensorId probabilities = logits_like("log_probabilities", costs.logits_kept);
  const TensorId scratch = logits_like("loss_scratch", costs.logits_forward_workspace);
  b.elementwise("loss", {logits}, {probabilities, scratch}, {{logits, costs.loss_forward}}, costs.loss_launches);
  b.in(Phase::backward, Region::loss);
  const TensorId d_logits = logits_like("d_logits", 2);
  const TensorId back_scratch = logits_like("loss_backward_scratch", costs.logits_backward_workspace);
  b.elementwise("loss_backward", {probabilities}, {d_logits, back_scratch}, {{d_logits, costs.loss_backward}},
                costs.loss_launches);
  const TensorId d_normed = b.hidden("d_normed");
  b.plain_linear_backward({"head", normed, w, d_logits, d_normed, {Dim::hidden}, {Dim::vocab}});
  b.in(Phase::backward);
  const TensorId d_x = b.hidden("d_x", Port::grad_input);
  b.elementwise("final_norm_backward", {d_normed, x, kept, small.value}, BlockBuilder::with_gradient({d_x}, small),
                {{x, costs.norm_backward}}, costs.norm_launches);
  b.scratch_like(x, costs.norm_backward_scratch);
  b.accumulate("accumulate_head", {w, small});
}

/// Trained matrices of all layers, routed experts not counted.
std::int64_t layer_matrices(const OpGraph& graph) {
  std::int64_t sum = 0;
  for (const BlockTemplate& block : graph.templates) {
    for (const Tensor& tensor : block.tensors) {
      if (block.kind == BlockKind::layer && is_matrix(tensor) && !tensor.frozen &&
          tensor.find(Dim::experts) == nullptr) {
        sum += block.instances * global_elements(tensor);
      }
    }
  }
  return sum;
}

void build_optimizer(const Transformer& model, const StepOptions& options, OpGraph& graph) {
  const ElementwiseCosts& costs = options.costs;
  const TrainedElements trained = trained_elements(graph);
  const std::int64_t matrices = costs.matrix_optimizer_bytes ? layer_matrices(graph) : 0;
  BlockTemplate& block =
      graph.templates.emplace_back(BlockTemplate{.name = "optimizer", .kind = BlockKind::optimizer, .instances = 1});
  BlockBuilder b(model, options, block);
  std::vector<TensorId> states;
  std::vector<Traffic> traffic;
  const auto add = [&](const std::string& name, std::vector<Extent> shape, bool matrix) {
    states.push_back(block.add(
        {.name = name,
         .shape = std::move(shape),
         .element_bytes = matrix ? costs.matrix_optimizer_bytes.value_or(costs.optimizer_bytes) : costs.optimizer_bytes,
         .kind = MemoryKind::optimizer_states,
         .persistent = true}));
    const bool apart = matrix && costs.matrix_optimizer_bytes;
    traffic.push_back({states.back(), apart ? costs.matrix_optimizer_traffic : costs.optimizer_traffic});
  };
  add("optimizer_states", {{.dim = Dim::elements, .size = trained.dense - matrices}}, false);
  if (matrices > 0) {
    add("matrix_states", {{.dim = Dim::elements, .size = matrices}}, true);
  }
  if (trained.of_experts > 0) {
    // Of the routed experts, which expert parallelism places by expert.
    add("expert_states",
        {{.dim = Dim::elements, .size = trained.of_experts / model.moe->experts},
         {.dim = Dim::experts, .size = model.moe->experts}},
        true);
  }
  b.in(Phase::update);
  b.elementwise("adam", states, states, traffic, 1);
  Op& adam = block.body(Phase::update).ops.back();
  adam.purpose = Purpose::optimizer;
  if (costs.optimizer_transient_bytes > 0) {
    adam.scratch.push_back(block.add({.name = "optimizer_transients",
                                      .shape = {{.dim = Dim::elements, .size = count_parameters(model).total}},
                                      .element_bytes = costs.optimizer_transient_bytes,
                                      .kind = MemoryKind::gradients}));
  }
  adam.drains = true;  // clipping needs the norm of all gradients first
  b.host_time("log_step", options.fixed_time_per_step);
}

/// Index of the template of every layer: layers of equal kind share one.
std::vector<std::size_t> layer_templates(const Transformer& model, std::vector<std::size_t>& first_layers) {
  std::vector<std::size_t> of_layer;
  for (std::size_t layer = 0; layer < model.layer_specs.size(); ++layer) {
    const LayerSpec& spec = model.layer_specs[layer];
    const auto same = std::find_if(first_layers.begin(), first_layers.end(), [&](std::size_t other) {
      return model.layer_specs[other].sliding_window == spec.sliding_window &&
             model.layer_specs[other].chunk == spec.chunk && model.layer_specs[other].moe == spec.moe;
    });
    of_layer.push_back(static_cast<std::size_t>(same - first_layers.begin()));
    if (same == first_layers.end()) {
      first_layers.push_back(layer);
    }
  }
  return of_layer;
}

void build_program(OpGraph& graph, const std::vector<std::size_t>& of_layer) {
  const auto layers = static_cast<std::int32_t>(of_layer.size());
  const TemplateId head(graph.templates.size() - 2);
  Role role;
  for (std::int32_t micro = 0; micro < graph.micro_batches; ++micro) {
    const bool last = micro + 1 == graph.micro_batches;
    const auto run = [&](TemplateId id, std::int32_t block, Phase phase) {
      role.program.push_back(
          {.block_template = id, .block = block, .micro_batch = micro, .phase = phase, .last_micro_batch = last});
    };
    run(TemplateId(0), 0, Phase::forward);
    for (std::int32_t layer = 0; layer < layers; ++layer) {
      run(TemplateId(1 + of_layer[static_cast<std::size_t>(layer)]), layer + 1, Phase::forward);
    }
    run(head, layers + 1, Phase::forward);
    run(head, layers + 1, Phase::backward);
    for (std::int32_t layer = layers - 1; layer >= 0; --layer) {
      run(TemplateId(1 + of_layer[static_cast<std::size_t>(layer)]), layer + 1, Phase::backward);
    }
    run(TemplateId(0), 0, Phase::backward);
  }
  role.program.push_back({.block_template = TemplateId(graph.templates.size() - 1),
                          .block = layers + 2,
                          .micro_batch = 0,
                          .phase = Phase::update,
                          .last_micro_batch = true});
  graph.roles.push_back(std::move(role));
}

}  // namespace

Mask mask_of(const LayerSpec& layer, const StepOptions& options) {
  Mask mask{.kind = options.mask, .sparse = options.block_sparse, .documents = options.documents};
  if (options.mask == Mask::Kind::full || options.block_sparse) {
    return mask;
  }
  mask.window = layer.sliding_window && options.sliding_window
                    ? std::min(*layer.sliding_window, *options.sliding_window)
                    : (layer.sliding_window ? layer.sliding_window : options.sliding_window);
  mask.chunk = layer.chunk;
  return mask;
}

TrainedElements trained_elements(const OpGraph& graph) {
  TrainedElements sum;
  for (const BlockTemplate& block : graph.templates) {
    for (const Tensor& tensor : block.tensors) {
      if (tensor.parameter && !tensor.frozen && !tensor.shared) {
        (tensor.find(Dim::experts) != nullptr ? sum.of_experts : sum.dense) +=
            block.instances * global_elements(tensor);
      }
    }
  }
  return sum;
}

OpGraph build_training_step(const Transformer& model, const StepOptions& options) {
  OpGraph graph;
  graph.micro_batches = options.micro_batches;
  std::vector<std::size_t> first_layers;
  const std::vector<std::size_t> of_layer = layer_templates(model, first_layers);
  graph.templates.push_back({.name = "embedding", .kind = BlockKind::embedding, .instances = 1});
  build_embedding(model, options, graph.templates.back());
  for (std::size_t kind = 0; kind < first_layers.size(); ++kind) {
    const std::size_t layer = first_layers[kind];
    BlockTemplate block{.name = first_layers.size() == 1 ? "layer" : fmt::format("layer{}", kind),
                        .kind = BlockKind::layer,
                        .instances = std::count(of_layer.begin(), of_layer.end(), kind)};
    LayerBuilder(model, options, block, model.layer_specs[layer], layer).build();
    graph.templates.push_back(std::move(block));
  }
  graph.templates.push_back({.name = "head", .kind = BlockKind::head, .instances = 1});
  build_head(model, options, graph.templates.back());
  build_optimizer(model, options, graph);
  build_program(graph, of_layer);
  return graph;
}

namespace {

template <class FlopsOf>
Flops sum_flops(const OpGraph& graph, FlopsOf flops_of) {
  const std::int64_t rings = graph.mesh.size(MeshAxis::ring);
  // Each stage of a pipeline has a role of its own.
  const std::int64_t ranks = graph.mesh.world() / rings / graph.mesh.size(MeshAxis::pipeline);
  const auto ranks_of_one_coordinate = static_cast<double>(ranks);
  std::vector<std::array<double, kPhases>> of_template(graph.templates.size());
  for (std::size_t t = 0; t < graph.templates.size(); ++t) {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
      // Work is linear in tokens, so a loop's trips together do what one call over all tokens would. Parts are ops of
      // their own.
      const Body& body = graph.templates[t].body(phase);
      double sum = 0;
      for (Op op : body.ops) {
        if (!std::holds_alternative<GemmWork>(op.work) && !std::holds_alternative<AttentionWork>(op.work)) {
          continue;
        }
        const auto times = static_cast<double>(op.part ? op.repeats : 1);
        op.loop = op.part ? op.loop : -1;
        for (std::int64_t ring = 0; ring < rings; ++ring) {
          sum +=
              times *
              flops_of(graph.templates[t], op, kernel_of(graph, graph.templates[t], body, op, {.ring = ring})).value();
        }
      }
      of_template[t][static_cast<std::size_t>(phase)] = sum * ranks_of_one_coordinate;
    }
  }
  double total = 0;
  for (const Role& role : graph.roles) {
    for (const Instance& instance : role.program) {
      total += of_template[instance.block_template.index()][static_cast<std::size_t>(instance.phase)];
    }
  }
  return Flops(total);
}

/// The part of what all ranks together count in `dims` that the model has: every rank that projects its own copy of a
/// key/value head repeats work, and a vocabulary that does not divide is padded to equal parts.
double share_of_model(const OpGraph& graph, const Tensor& operand, const std::vector<Dim>& dims) {
  double share = 1;
  for (const Dim dim : dims) {
    const Extent& extent = *operand.find(dim);
    std::int64_t counted = local_size(extent, graph.mesh) * extent.replicas;
    for (const MeshAxis axis : extent.split) {
      counted *= graph.mesh.size(axis);
    }
    share *= static_cast<double>(extent.size) / static_cast<double>(counted);
  }
  return share;
}

}  // namespace

Flops model_flops(const OpGraph& graph) {
  return sum_flops(graph, [&graph](const BlockTemplate& block, const Op& op, const kernel::Kernel& kernel) {
    if (op.recomputed || op.purpose == Purpose::optimizer) {
      return Flops(0);  // what an optimizer multiplies is no work of the model
    }
    double share = 1;
    if (const auto* gemm = std::get_if<GemmWork>(&op.work)) {
      const Tensor& a = block.tensor(op.reads[0]);
      share = share_of_model(graph, a, gemm->m) * share_of_model(graph, a, gemm->k) *
              share_of_model(graph, a, gemm->groups) * share_of_model(graph, block.tensor(op.reads[1]), gemm->n);
    }
    return kernel::model_flops(kernel) * share;
  });
}

Flops executed_flops(const OpGraph& graph) {
  return sum_flops(graph, [](const BlockTemplate&, const Op&, const kernel::Kernel& kernel) {
    return kernel::executed_flops(kernel);
  });
}

}  // namespace ulysim::workload
