#include "sim/workload/training_step.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/workload/shape.h"

namespace ulysim::workload {

namespace {

/// Writes one block template. Tensors are named after what the field calls them; `d_x` is the gradient of x.
class BlockBuilder {
 public:
  BlockBuilder(const Transformer& model, const StepOptions& options, BlockTemplate& block)
      : model_(model), options_(options), block_(block) {}

  TensorId activation(const std::string& name, std::vector<Extent> inner, std::int64_t bytes = 2) {
    std::vector<Extent> shape{{.dim = Dim::batch, .size = options_.batch},
                              {.dim = Dim::tokens, .size = options_.sequence_length}};
    shape.insert(shape.end(), inner.begin(), inner.end());
    return block_.add({.name = name, .shape = std::move(shape), .element_bytes = bytes});
  }
  TensorId hidden(const std::string& name, Port port = Port::none) {
    const TensorId id = activation(name, {{.dim = Dim::hidden, .size = model_.hidden}});
    block_.tensor(id).port = port;
    return id;
  }
  /// A weight, its gradient of this micro-batch, and the accumulated gradient.
  struct Weight {
    TensorId value{};
    TensorId grad{};
    TensorId total{};
  };
  Weight weight(const std::string& name, const std::vector<Extent>& shape) {
    Weight w;
    w.value =
        block_.add({.name = name, .shape = shape, .kind = MemoryKind::weights, .persistent = true, .parameter = true});
    w.grad = block_.add({.name = "d_" + name, .shape = shape, .kind = MemoryKind::gradients});
    w.total = block_.add({.name = "sum_d_" + name,
                          .shape = shape,
                          .element_bytes = options_.costs.gradient_bytes,
                          .kind = MemoryKind::gradients,
                          .persistent = true});
    return w;
  }

  void in(Phase phase, Region region = Region::other) {
    phase_ = phase;
    region_ = region;
  }
  Op& add(Op op) {
    op.region = region_;
    Body& body = block_.body(phase_);
    body.ops.push_back(std::move(op));
    return body.ops.back();
  }
  void gemm(const std::string& name, TensorId a, TensorId b, TensorId c, GemmWork work) {
    add({.name = name, .work = std::move(work), .reads = {a, b}, .writes = {c}, .purpose = Purpose::gemm});
  }
  void elementwise(const std::string& name, std::vector<TensorId> reads, std::vector<TensorId> writes,
                   std::vector<Traffic> traffic, std::int64_t launches) {
    const std::int64_t factor = phase_ == Phase::backward ? options_.costs.backward_launches : 1;
    add({.name = name,
         .work = ElementwiseWork{.traffic = std::move(traffic), .launches = launches * factor},
         .reads = std::move(reads),
         .writes = std::move(writes)});
  }
  /// The host is busy with something that no kernel shows.
  void host_time(const std::string& name, Duration time) {
    if (time > Duration{}) {
      add({.name = name,
           .work = HostWork{.fixed = time},
           .stream = Stream::host_work,
           .purpose = Purpose::host,
           .host_waits = true});
    }
  }
  /// y = x·W; `in_dims` are contracted forward.
  struct Linear {
    std::string name{};
    TensorId x{};
    Weight w{};
    TensorId d_y{};
    TensorId d_x{};
    std::vector<Dim> in_dims{};
    std::vector<Dim> out_dims{};
  };
  /// The gradients of the inputs first: what comes next, communication too, waits for those and not for the weights'.
  void linear_backward(const std::vector<Linear>& maps) {
    const std::vector<Dim> rows{Dim::batch, Dim::tokens};
    for (const Linear& l : maps) {
      gemm(l.name + "_dgrad", l.d_y, l.w.value, l.d_x, {.m = rows, .n = l.in_dims, .k = l.out_dims});
    }
    for (const Linear& l : maps) {
      gemm(l.name + "_wgrad", l.x, l.d_y, l.w.grad, {.m = l.in_dims, .n = l.out_dims, .k = rows});
    }
  }
  void accumulate(const std::string& name, const std::vector<Weight>& weights) {
    Op op{.name = name, .work = ElementwiseWork{.launches = static_cast<std::int64_t>(weights.size())}};
    auto& traffic = std::get<ElementwiseWork>(op.work).traffic;
    const double bytes = 2.0 + 2.0 * static_cast<double>(options_.costs.gradient_bytes);
    for (const Weight& w : weights) {
      op.reads.push_back(w.grad);
      op.writes.push_back(w.total);
      traffic.push_back({.tensor = w.grad, .bytes_per_element = bytes});
    }
    add(std::move(op));
  }

  const Transformer& model_;
  const StepOptions& options_;
  BlockTemplate& block_;

 private:
  Phase phase_{Phase::forward};
  Region region_{Region::other};
};

std::vector<Extent> heads_of(const Transformer& model) {
  return {{.dim = Dim::heads, .size = model.heads}, {.dim = Dim::head_dim, .size = model.head_dim}};
}
std::vector<Extent> kv_heads_of(const Transformer& model) {
  return {{.dim = Dim::kv_heads, .size = model.kv_heads}, {.dim = Dim::head_dim, .size = model.head_dim}};
}

/// What a layer's forward pass leaves for its backward pass.
struct LayerTensors {
  TensorId x{}, normed{}, norm_kept{}, q{}, k{}, v{}, rq{}, rk{}, o{}, lse{}, x1{}, normed1{}, norm1_kept{};
  TensorId gate{}, up{}, product{}, activation_kept{};
  BlockBuilder::Weight wq{}, wk{}, wv{}, wo{}, w_gate{}, w_up{}, w_down{}, small{};
};

const std::vector<Dim> kRows{Dim::batch, Dim::tokens};
const std::vector<Dim> kHeads{Dim::heads, Dim::head_dim};
const std::vector<Dim> kKvHeads{Dim::kv_heads, Dim::head_dim};

class LayerBuilder {
 public:
  LayerBuilder(const Transformer& model, const StepOptions& options, BlockTemplate& block, const LayerSpec& spec,
               std::size_t layer)
      : b_(block_builder(model, options, block)),
        model_(model),
        costs_(options.costs),
        gated_(model.mlp_kind == MlpKind::gated),
        norms_(static_cast<double>(model.norms.per_layer) / 2.0) {
    mask_ = mask_of(spec, options);
    declare_weights(layer_parameters(model, layer).total());
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

  void declare_weights(std::int64_t parameters) {
    const Extent h{.dim = Dim::hidden, .size = model_.hidden};
    const Extent f{.dim = Dim::ffn, .size = model_.ffn};
    const auto with = [](std::vector<Extent> a, const Extent& b) {
      a.push_back(b);
      return a;
    };
    std::vector<Extent> q{h};
    std::vector<Extent> kv{h};
    for (const Extent& e : heads_of(model_)) {
      q.push_back(e);
    }
    for (const Extent& e : kv_heads_of(model_)) {
      kv.push_back(e);
    }
    t_.wq = b_.weight("w_q", q);
    t_.wk = b_.weight("w_k", kv);
    t_.wv = b_.weight("w_v", kv);
    t_.wo = b_.weight("w_o", with(heads_of(model_), h));
    if (gated_) {
      t_.w_gate = b_.weight("w_gate", {h, f});
    }
    t_.w_up = b_.weight("w_up", {h, f});
    t_.w_down = b_.weight("w_down", {f, h});
    const std::int64_t qkvo = 2 * model_.hidden * model_.head_dim * (model_.heads + model_.kv_heads);
    const std::int64_t mlp = (gated_ ? 3 : 2) * model_.hidden * model_.ffn;
    // Norm weights and biases: in the books, too small to be worth ops of their own.
    t_.small = b_.weight("w_small", {{.dim = Dim::elements, .size = parameters - qkvo - mlp}});
  }

  void attention_forward() {
    b_.in(Phase::forward);
    t_.x = b_.hidden("x", Port::input);
    t_.normed = b_.hidden("normed");
    t_.norm_kept = kept("norm_kept");
    b_.elementwise("norm", {t_.x, t_.small.value}, {t_.normed, t_.norm_kept}, {{t_.x, costs_.norm_forward * norms_}},
                   costs_.norm_launches);
    t_.q = b_.activation("q", heads_of(model_));
    t_.k = b_.activation("k", kv_heads_of(model_));
    t_.v = b_.activation("v", kv_heads_of(model_));
    b_.gemm("q_proj", t_.normed, t_.wq.value, t_.q, {.m = kRows, .n = kHeads, .k = {Dim::hidden}});
    b_.gemm("k_proj", t_.normed, t_.wk.value, t_.k, {.m = kRows, .n = kKvHeads, .k = {Dim::hidden}});
    b_.gemm("v_proj", t_.normed, t_.wv.value, t_.v, {.m = kRows, .n = kKvHeads, .k = {Dim::hidden}});
    t_.rq = b_.activation("rope_q", heads_of(model_));
    t_.rk = b_.activation("rope_k", kv_heads_of(model_));
    b_.elementwise("rope", {t_.q, t_.k}, {t_.rq, t_.rk}, {{t_.q, costs_.rope_forward}, {t_.k, costs_.rope_forward}},
                   costs_.rope_launches);
    b_.in(Phase::forward, Region::core_attention);
    t_.o = b_.activation("o", heads_of(model_));
    t_.lse = b_.activation("lse", {{.dim = Dim::heads, .size = model_.heads}}, 4);
    b_.add({.name = "attention",
            .work =
                AttentionWork{
                    .implementation = b_.options_.attention, .direction = kernel::Direction::forward, .mask = mask_},
            .reads = {t_.rq, t_.rk, t_.v},
            .writes = {t_.o, t_.lse},
            .purpose = Purpose::attention,
            .drains = b_.options_.attention_synchronises});
    b_.in(Phase::forward);
    const TensorId projected = b_.hidden("attention_out");
    b_.gemm("o_proj", t_.o, t_.wo.value, projected, {.m = kRows, .n = {Dim::hidden}, .k = kHeads});
    t_.x1 = b_.hidden("x1");
    b_.elementwise("residual", {t_.x, projected}, {t_.x1}, {{t_.x1, costs_.residual_forward}},
                   costs_.residual_launches);
  }

  void mlp_forward() {
    t_.normed1 = b_.hidden("normed1");
    t_.norm1_kept = kept("norm1_kept");
    b_.elementwise("norm1", {t_.x1, t_.small.value}, {t_.normed1, t_.norm1_kept},
                   {{t_.x1, costs_.norm_forward * norms_}}, costs_.norm_launches);
    b_.in(Phase::forward, Region::mlp);
    t_.up = wide("up");
    if (gated_) {
      t_.gate = wide("gate");
      b_.gemm("gate_proj", t_.normed1, t_.w_gate.value, t_.gate, {.m = kRows, .n = {Dim::ffn}, .k = {Dim::hidden}});
    }
    b_.gemm("up_proj", t_.normed1, t_.w_up.value, t_.up, {.m = kRows, .n = {Dim::ffn}, .k = {Dim::hidden}});
    t_.product = wide("product");
    std::vector<TensorId> inputs = gated_ ? std::vector<TensorId>{t_.gate, t_.up} : std::vector<TensorId>{t_.up};
    std::vector<TensorId> outputs{t_.product};
    if (costs_.activation_saved > 0) {
      t_.activation_kept =
          b_.activation("activation_kept", {{.dim = Dim::ffn, .size = model_.ffn}}, costs_.activation_saved);
      outputs.push_back(t_.activation_kept);
    }
    b_.elementwise("activation", inputs, outputs, {{t_.product, costs_.activation_forward}},
                   costs_.activation_launches);
    const TensorId mlp_out = b_.hidden("mlp_out");
    b_.gemm("down_proj", t_.product, t_.w_down.value, mlp_out, {.m = kRows, .n = {Dim::hidden}, .k = {Dim::ffn}});
    b_.in(Phase::forward);
    const TensorId y = b_.hidden("y", Port::output);
    b_.elementwise("residual1", {t_.x1, mlp_out}, {y}, {{y, costs_.residual_forward}}, costs_.residual_launches);
  }

  void mlp_backward() {
    b_.in(Phase::backward, Region::mlp);
    d_y_ = b_.hidden("d_y", Port::grad_output);
    const TensorId d_product = wide("d_product");
    b_.linear_backward({{"down", t_.product, t_.w_down, d_y_, d_product, {Dim::ffn}, {Dim::hidden}}});
    const TensorId d_up = wide("d_up");
    const TensorId d_gate = gated_ ? wide("d_gate") : TensorId{};
    std::vector<TensorId> reads{d_product, t_.up};
    std::vector<TensorId> writes{d_up};
    if (gated_) {
      reads.push_back(t_.gate);
      writes.push_back(d_gate);
    }
    if (costs_.activation_saved > 0) {
      reads.push_back(t_.activation_kept);
    }
    b_.elementwise("activation_backward", reads, writes, {{d_product, costs_.activation_backward}},
                   costs_.activation_launches);
    std::vector<TensorId> d_normed;
    std::vector<BlockBuilder::Linear> maps;
    std::vector<BlockBuilder::Weight> weights{t_.w_up, t_.w_down};
    if (gated_) {
      d_normed.push_back(b_.hidden("d_normed1_gate"));
      maps.push_back({"gate", t_.normed1, t_.w_gate, d_gate, d_normed.back(), {Dim::hidden}, {Dim::ffn}});
      weights.push_back(t_.w_gate);
    }
    d_normed.push_back(b_.hidden("d_normed1_up"));
    maps.push_back({"up", t_.normed1, t_.w_up, d_up, d_normed.back(), {Dim::hidden}, {Dim::ffn}});
    b_.linear_backward(maps);
    b_.in(Phase::backward);
    b_.accumulate("accumulate_mlp", weights);
    d_x1_ = b_.hidden("d_x1");
    d_normed.insert(d_normed.end(), {t_.x1, t_.norm1_kept, d_y_, t_.small.value});
    b_.elementwise("norm1_backward", d_normed, {d_x1_},
                   {{t_.x1, costs_.norm_backward * norms_ + costs_.residual_backward}}, costs_.norm_launches);
  }

  void attention_backward() {
    const TensorId d_o = b_.activation("d_o", heads_of(model_));
    b_.linear_backward({{"o", t_.o, t_.wo, d_x1_, d_o, kHeads, {Dim::hidden}}});
    const TensorId d_rq = b_.activation("d_rope_q", heads_of(model_));
    const TensorId d_rk = b_.activation("d_rope_k", kv_heads_of(model_));
    const TensorId d_v = b_.activation("d_v", kv_heads_of(model_));
    b_.in(Phase::backward, Region::core_attention);
    b_.add({.name = "attention_backward",
            .work =
                AttentionWork{
                    .implementation = b_.options_.attention, .direction = kernel::Direction::backward, .mask = mask_},
            .reads = {t_.rq, t_.rk, t_.v, t_.o, t_.lse, d_o},
            .writes = {d_rq, d_rk, d_v, workspace()},
            .purpose = Purpose::attention});
    b_.in(Phase::backward);
    const TensorId d_q = b_.activation("d_q", heads_of(model_));
    const TensorId d_k = b_.activation("d_k", kv_heads_of(model_));
    b_.elementwise("rope_backward", {d_rq, d_rk}, {d_q, d_k},
                   {{d_rq, costs_.rope_backward}, {d_rk, costs_.rope_backward}}, costs_.rope_launches);
    const TensorId from_q = b_.hidden("d_normed_q");
    const TensorId from_k = b_.hidden("d_normed_k");
    const TensorId from_v = b_.hidden("d_normed_v");
    b_.linear_backward({{"q", t_.normed, t_.wq, d_q, from_q, {Dim::hidden}, kHeads},
                        {"k", t_.normed, t_.wk, d_k, from_k, {Dim::hidden}, kKvHeads},
                        {"v", t_.normed, t_.wv, d_v, from_v, {Dim::hidden}, kKvHeads}});
    const TensorId d_x = b_.hidden("d_x", Port::grad_input);
    b_.elementwise("norm_backward", {from_q, from_k, from_v, t_.x, t_.norm_kept, d_x1_, t_.small.value},
                   {d_x, t_.small.grad}, {{t_.x, costs_.norm_backward * norms_ + costs_.residual_backward}},
                   costs_.norm_launches);
    b_.accumulate("accumulate_attention", {t_.wq, t_.wk, t_.wv, t_.wo, t_.small});
  }

  TensorId kept(const std::string& name) {
    return b_.activation(name, {{.dim = Dim::hidden, .size = model_.hidden}}, costs_.norm_saved);
  }
  TensorId wide(const std::string& name) { return b_.activation(name, {{.dim = Dim::ffn, .size = model_.ffn}}); }
  /// The backward kernel's scratch, written for the op's own time. All of it scales with the query heads, so that
  /// sharding carries over. Per query-head element: fp32 dQ accumulator 4 B; FlashAttention-2 and SDPA expand dK
  /// and dV to the query heads in bf16 (4 B) when heads are grouped; FlashAttention-3 keeps fp32 dK and dV of the
  /// key/value heads (8 B each group) instead. Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp (mha_bwd),
  /// hopper/flash_api.cpp; cuDNN: dQ accumulator (cudnn-frontend, SDPA backward node).
  TensorId workspace() {
    const bool grouped = model_.heads != model_.kv_heads;
    std::int64_t bytes = 4;
    switch (b_.options_.attention) {
      case kernel::AttentionKernel::flash_attention_2:
      case kernel::AttentionKernel::sdpa:
        bytes += grouped ? 4 : 0;
        break;
      case kernel::AttentionKernel::flash_attention_3:
        bytes += grouped ? (8 * model_.kv_heads + model_.heads - 1) / model_.heads : 0;
        break;
      case kernel::AttentionKernel::cudnn:
        break;
    }
    const TensorId id = b_.activation("attention_workspace", heads_of(model_), bytes);
    b_.block_.tensor(id).kind = MemoryKind::attention_workspace;
    return id;
  }

  BlockBuilder b_;
  const Transformer& model_;
  const ElementwiseCosts& costs_;
  bool gated_;
  double norms_;
  Mask mask_{};
  LayerTensors t_{};
  TensorId d_y_{}, d_x1_{};
};

void build_embedding(const Transformer& model, const StepOptions& options, BlockTemplate& block) {
  BlockBuilder b(model, options, block);
  const ParameterCount count = count_parameters(model);
  auto table =
      b.weight("w_embedding", {{.dim = Dim::vocab, .size = model.vocab}, {.dim = Dim::hidden, .size = model.hidden}});
  auto small = b.weight(
      "w_small",
      {{.dim = Dim::elements,
        .size = std::max<std::int64_t>(1, count.position_embedding + count.embedding - model.vocab * model.hidden)}});
  if (count.position_embedding + count.embedding == model.vocab * model.hidden) {
    block.tensor(small.value).shared = block.tensor(small.total).shared = true;  // holds nothing
  }
  b.in(Phase::forward);
  b.host_time("load_batch", options.fixed_time_per_micro_step);
  const TensorId y = b.hidden("y", Port::output);
  b.elementwise("lookup", {table.value, small.value}, {y}, {{y, 4.0}}, 1);
  b.in(Phase::backward);
  const TensorId d_y = b.hidden("d_y", Port::grad_output);
  b.elementwise("lookup_backward", {d_y}, {table.grad, small.grad}, {{d_y, 4.0}, {table.grad, 2.0}}, 2);
  b.accumulate("accumulate_embedding", {table, small});
}

void build_head(const Transformer& model, const StepOptions& options, BlockTemplate& block) {
  BlockBuilder b(model, options, block);
  const ElementwiseCosts& costs = options.costs;
  const ParameterCount count = count_parameters(model);
  const std::int64_t table = model.vocab * model.hidden;
  auto w = b.weight("w_head", {{.dim = Dim::hidden, .size = model.hidden}, {.dim = Dim::vocab, .size = model.vocab}});
  if (model.tied_embeddings) {
    block.tensor(w.value).shared = block.tensor(w.total).shared = true;
  }
  auto small = b.weight(
      "w_small", {{.dim = Dim::elements, .size = count.final_norm + count.head - (model.tied_embeddings ? 0 : table)}});
  const auto logits_like = [&](const std::string& name, std::int64_t bytes) {
    const TensorId id = b.activation(name, {{.dim = Dim::vocab, .size = model.vocab}}, bytes);
    block.tensor(id).kind = MemoryKind::logits;
    return id;
  };
  b.in(Phase::forward);
  const TensorId x = b.hidden("x", Port::input);
  const TensorId normed = b.hidden("normed");
  const TensorId kept = b.activation("norm_kept", {{.dim = Dim::hidden, .size = model.hidden}}, costs.norm_saved);
  b.elementwise("final_norm", {x, small.value}, {normed, kept}, {{x, costs.norm_forward}}, costs.norm_launches);
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
  b.linear_backward({{"head", normed, w, d_logits, d_normed, {Dim::hidden}, {Dim::vocab}}});
  b.in(Phase::backward);
  const TensorId d_x = b.hidden("d_x", Port::grad_input);
  b.elementwise("final_norm_backward", {d_normed, x, kept, small.value}, {d_x, small.grad}, {{x, costs.norm_backward}},
                costs.norm_launches);
  b.accumulate("accumulate_head", {w, small});
}

void build_optimizer(const Transformer& model, const StepOptions& options, BlockTemplate& block) {
  BlockBuilder b(model, options, block);
  const TensorId states = block.add({.name = "optimizer_states",
                                     .shape = {{.dim = Dim::elements, .size = count_parameters(model).total}},
                                     .element_bytes = options.costs.optimizer_bytes,
                                     .kind = MemoryKind::optimizer_states,
                                     .persistent = true});
  b.in(Phase::update);
  b.elementwise("adam", {states}, {states}, {{states, options.costs.optimizer_traffic}}, 1);
  Op& adam = block.body(Phase::update).ops.back();
  adam.purpose = Purpose::optimizer;
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

OpGraph build_training_step(const Transformer& model, const StepOptions& options) {
  ULYSIM_CHECK(!model.moe && !model.mla, "{} is no dense model", model.name);
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
  graph.templates.push_back({.name = "optimizer", .kind = BlockKind::optimizer, .instances = 1});
  build_optimizer(model, options, graph.templates.back());
  build_program(graph, of_layer);
  return graph;
}

namespace {

template <class FlopsOf>
Flops sum_flops(const OpGraph& graph, FlopsOf flops_of) {
  const std::int64_t rings = graph.mesh.size(MeshAxis::ring);
  const auto ranks_of_one_coordinate = static_cast<double>(graph.mesh.world() / rings);
  std::vector<std::array<double, kPhases>> of_template(graph.templates.size());
  for (std::size_t t = 0; t < graph.templates.size(); ++t) {
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::update}) {
      // Work is linear in tokens, so a loop's trips together do what one call over all tokens would.
      const Body& body = graph.templates[t].body(phase);
      double sum = 0;
      for (Op op : body.ops) {
        if (op.purpose != Purpose::gemm && op.purpose != Purpose::attention) {
          continue;
        }
        op.loop = -1;
        for (std::int64_t ring = 0; ring < rings; ++ring) {
          sum +=
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
    if (op.recomputed) {
      return Flops(0);
    }
    double share = 1;
    if (const auto* gemm = std::get_if<GemmWork>(&op.work)) {
      const Tensor& a = block.tensor(op.reads[0]);
      share = share_of_model(graph, a, gemm->m) * share_of_model(graph, a, gemm->k) *
              share_of_model(graph, block.tensor(op.reads[1]), gemm->n);
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
