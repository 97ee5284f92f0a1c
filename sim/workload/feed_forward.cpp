#include "sim/workload/feed_forward.h"

namespace ulysim::workload {

FeedForward::FeedForward(BlockBuilder& builder, Spec spec)
    : b_(builder), spec_(std::move(spec)), gated_(builder.model().mlp_kind == MlpKind::gated) {
  const Extent h{.dim = Dim::hidden, .size = b_.model().hidden};
  const Extent f{.dim = Dim::ffn, .size = spec_.width};
  std::vector<Extent> up{h, f};
  std::vector<Extent> down{f, h};
  for (const Extent& extent : spec_.rows) {
    if (extent.dim == Dim::experts) {
      up.push_back(extent);
      down.push_back(extent);
      rows_ = {.dims = {Dim::slots}, .groups = {Dim::experts}};
    }
  }
  if (gated_) {
    w_gate_ = b_.linear_weight("w_" + spec_.prefix + "gate", up);
  }
  w_up_ = b_.linear_weight("w_" + spec_.prefix + "up", up);
  w_down_ = b_.linear_weight("w_" + spec_.prefix + "down", down);
}

TensorId FeedForward::activation(const std::string& name, const Extent& inner, std::int64_t bytes) {
  if (spec_.rows.empty()) {
    return b_.activation(name, {inner}, bytes);
  }
  std::vector<Extent> shape = spec_.rows;
  shape.push_back(inner);
  return b_.block().add({.name = name, .shape = std::move(shape), .element_bytes = bytes});
}

TensorId FeedForward::wide(const std::string& name, std::int64_t bytes) {
  return activation(name, {.dim = Dim::ffn, .size = spec_.width}, bytes);
}

TensorId FeedForward::forward(TensorId x) {
  const ElementwiseCosts& costs = b_.options().costs;
  const std::string& p = spec_.prefix;
  x_ = x;
  up_ = wide(p + "up");
  if (gated_) {
    gate_ = wide(p + "gate");
    b_.linear(p + "gate_proj",
              {.x = x, .w = w_gate_, .in_dims = {Dim::hidden}, .out_dims = {Dim::ffn}, .target = "gate_proj"}, gate_,
              rows_);
  }
  b_.linear(p + "up_proj", {.x = x, .w = w_up_, .in_dims = {Dim::hidden}, .out_dims = {Dim::ffn}, .target = "up_proj"},
            up_, rows_);
  product_ = wide(p + "product");
  const std::vector<TensorId> inputs = gated_ ? std::vector<TensorId>{gate_, up_} : std::vector<TensorId>{up_};
  std::vector<TensorId> outputs{product_};
  if (costs.activation_saved > 0) {
    activation_kept_ = wide(p + "activation_kept", costs.activation_saved);
    outputs.push_back(activation_kept_);
  }
  b_.elementwise(p + "activation", inputs, outputs, {{product_, costs.activation_forward}}, costs.activation_launches);
  const TensorId out = activation(p + "mlp_out", {.dim = Dim::hidden, .size = b_.model().hidden});
  b_.linear(p + "down_proj",
            {.x = product_, .w = w_down_, .in_dims = {Dim::ffn}, .out_dims = {Dim::hidden}, .target = "down_proj"}, out,
            rows_);
  return out;
}

std::vector<TensorId> FeedForward::backward(TensorId d_y) {
  const ElementwiseCosts& costs = b_.options().costs;
  const std::string& p = spec_.prefix;
  const TensorId d_product = wide("d_" + p + "product");
  const auto more =
      b_.linear_backward({{p + "down", product_, w_down_, d_y, d_product, {Dim::ffn}, {Dim::hidden}}}, rows_);
  const TensorId d_up = wide("d_" + p + "up");
  const TensorId d_gate = gated_ ? wide("d_" + p + "gate") : TensorId{};
  std::vector<TensorId> reads{d_product, up_};
  std::vector<TensorId> writes{d_up};
  if (gated_) {
    reads.push_back(gate_);
    writes.push_back(d_gate);
  }
  if (costs.activation_saved > 0) {
    reads.push_back(activation_kept_);
  }
  reads = BlockBuilder::joined(std::move(reads), more);
  b_.elementwise(p + "activation_backward", reads, writes, b_.fan_in({{d_product, costs.activation_backward}}, reads),
                 costs.activation_launches);
  b_.last().in_place = costs.activation_in_place;
  const std::string d_x = "d_" + b_.block().tensor(x_).name;
  const Extent hidden{.dim = Dim::hidden, .size = b_.model().hidden};
  // What goes home from the experts is one tensor, in which both products add up.
  const bool together = !spec_.rows.empty();
  std::vector<TensorId> parts;
  std::vector<BlockBuilder::Linear> maps;
  if (gated_) {
    parts.push_back(activation(together ? d_x : d_x + "_" + p + "gate", hidden));
    maps.push_back({p + "gate", x_, w_gate_, d_gate, parts.back(), {Dim::hidden}, {Dim::ffn}});
  }
  if (parts.empty() || !together) {
    parts.push_back(activation(together ? d_x : d_x + "_" + p + "up", hidden));
  }
  maps.push_back({p + "up", x_, w_up_, d_up, parts.back(), {Dim::hidden}, {Dim::ffn}});
  return BlockBuilder::joined(parts, b_.linear_backward(maps, rows_));
}

std::vector<BlockBuilder::Weight> FeedForward::weights() const {
  std::vector<BlockBuilder::Weight> all{w_up_, w_down_};
  if (gated_) {
    all.push_back(w_gate_);
  }
  return all;
}

}  // namespace ulysim::workload
