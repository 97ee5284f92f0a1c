#include "sim/workload/attention_projection.h"

namespace ulysim::workload {

AttentionExtents attention_extents(const Transformer& model) {
  const Extent heads{.dim = Dim::heads, .size = model.heads};
  const Extent kv_heads{.dim = Dim::kv_heads, .size = model.kv_heads};
  const Extent wide{.dim = Dim::head_dim, .size = query_head_dim(model)};
  const Extent value{.dim = model.mla ? Dim::v_head_dim : Dim::head_dim, .size = value_head_dim(model)};
  return {.q = {heads, wide}, .k = {kv_heads, wide}, .v = {kv_heads, value}, .o = {heads, value}};
}

std::vector<Dim> dims_of(const std::vector<Extent>& extents) {
  std::vector<Dim> dims;
  dims.reserve(extents.size());
  for (const Extent& extent : extents) {
    dims.push_back(extent.dim);
  }
  return dims;
}

AttentionProjection::AttentionProjection(BlockBuilder& builder)
    : b_(builder), extents_(attention_extents(builder.model())) {
  const Extent hidden{.dim = Dim::hidden, .size = b_.model().hidden};
  if (!b_.model().mla) {
    wq_ = declare("w_q", hidden, extents_.q);
    wk_ = declare("w_k", hidden, extents_.k);
    wv_ = declare("w_v", hidden, extents_.v);
    return;
  }
  const MlaSpec& mla = *b_.model().mla;
  kv_latent_extent_ = {.dim = Dim::kv_latent, .size = mla.kv_lora_rank};
  kv_down_extent_ = {.dim = Dim::kv_down, .size = mla.kv_lora_rank + mla.qk_rope_head_dim};
  nope_ = {extents_.k.front(), {.dim = Dim::nope_dim, .size = mla.qk_nope_head_dim}};
  if (mla.q_lora_rank) {
    q_latent_extent_ = {.dim = Dim::q_latent, .size = *mla.q_lora_rank};
    w_q_down_ = declare("w_q_down", hidden, {q_latent_extent_});
  }
  wq_ = declare("w_q", mla.q_lora_rank ? q_latent_extent_ : hidden, extents_.q);
  w_kv_down_ = declare("w_kv_down", hidden, {kv_down_extent_});
  wk_ = declare("w_k", kv_latent_extent_, nope_);
  wv_ = declare("w_v", kv_latent_extent_, extents_.v);
}

BlockBuilder::Weight AttentionProjection::declare(const char* name, const Extent& in, const std::vector<Extent>& out) {
  std::vector<Extent> shape{in};
  shape.insert(shape.end(), out.begin(), out.end());
  weights_.push_back(b_.linear_weight(name, shape));
  return weights_.back();
}

AttentionProjection::Outputs AttentionProjection::forward(TensorId x) {
  x_ = x;
  if (b_.model().mla) {
    return latent_forward(x);
  }
  const ElementwiseCosts& costs = b_.options().costs;
  const TensorId q = b_.activation("q", extents_.q);
  const TensorId k = b_.activation("k", extents_.k);
  const TensorId v = b_.activation("v", extents_.v);
  const auto project = [&](const char* name, const BlockBuilder::Weight& w, const std::vector<Extent>& out,
                           TensorId y) {
    b_.linear(name, {.x = x, .w = w, .in_dims = {Dim::hidden}, .out_dims = dims_of(out), .target = name}, y);
  };
  project("q_proj", wq_, extents_.q, q);
  project("k_proj", wk_, extents_.k, k);
  project("v_proj", wv_, extents_.v, v);
  const auto [nq, nk] = normed(q, k);
  const TensorId rq = b_.activation("rope_q", extents_.q);
  const TensorId rk = b_.activation("rope_k", extents_.k);
  b_.elementwise("rope", {nq, nk}, {rq, rk}, {{nq, costs.rope_forward}, {nk, costs.rope_forward}}, costs.rope_launches);
  return {.q = rq, .k = rk, .v = v};
}

/// Queries and keys, each normalised if the model does that.
std::pair<TensorId, TensorId> AttentionProjection::normed(TensorId q, TensorId k) {
  if (b_.model().qk_norm == QkNorm::none) {
    return {q, k};
  }
  const ElementwiseCosts& costs = b_.options().costs;
  norm_inputs_ = {q, k};
  const TensorId nq = b_.activation("normed_q", extents_.q);
  const TensorId nk = b_.activation("normed_k", extents_.k);
  norm_kept_ = {b_.activation("q_norm_kept", extents_.q, costs.norm_saved),
                b_.activation("k_norm_kept", extents_.k, costs.norm_saved)};
  b_.elementwise("qk_norm", {q, k}, {nq, nk, norm_kept_[0], norm_kept_[1]},
                 {{q, costs.norm_forward}, {k, costs.norm_forward}}, 2 * costs.norm_launches);
  return {nq, nk};
}

std::pair<TensorId, TensorId> AttentionProjection::normed_backward(TensorId d_nq, TensorId d_nk) {
  if (b_.model().qk_norm == QkNorm::none) {
    return {d_nq, d_nk};
  }
  const ElementwiseCosts& costs = b_.options().costs;
  const TensorId d_q = b_.activation("d_q", extents_.q);
  const TensorId d_k = b_.activation("d_k", extents_.k);
  std::vector<TensorId> reads{d_nq, d_nk, norm_kept_[0], norm_kept_[1]};
  if (costs.norm_keeps_input) {
    reads.insert(reads.end(), norm_inputs_.begin(), norm_inputs_.end());
  }
  b_.elementwise("qk_norm_backward", std::move(reads), {d_q, d_k},
                 {{d_nq, costs.norm_backward}, {d_nk, costs.norm_backward}}, 2 * costs.norm_launches);
  return {d_q, d_k};
}

AttentionProjection::Outputs AttentionProjection::latent_forward(TensorId x) {
  const ElementwiseCosts& costs = b_.options().costs;
  q_in_ = x;
  Dim q_in = Dim::hidden;
  if (b_.model().mla->q_lora_rank) {
    q_in = Dim::q_latent;
    q_down_ = b_.activation("q_down", {q_latent_extent_});
    b_.linear("q_down_proj",
              {.x = x, .w = w_q_down_, .in_dims = {Dim::hidden}, .out_dims = {q_in}, .target = "q_a_proj"}, q_down_);
    q_in_ = b_.activation("q_latent", {q_latent_extent_});
    b_.elementwise("q_norm", {q_down_}, {q_in_}, {{q_down_, costs.norm_forward}}, costs.norm_launches);
  }
  kv_down_ = b_.activation("kv_down", {kv_down_extent_});
  b_.linear(
      "kv_down_proj",
      {.x = x, .w = w_kv_down_, .in_dims = {Dim::hidden}, .out_dims = {Dim::kv_down}, .target = "kv_a_proj_with_mqa"},
      kv_down_);
  kv_latent_ = b_.activation("kv_latent", {kv_latent_extent_});
  b_.elementwise("kv_norm", {kv_down_}, {kv_latent_}, {{kv_latent_, costs.norm_forward}}, costs.norm_launches);
  const TensorId q = b_.activation("q", extents_.q);
  const TensorId k = b_.activation("k_nope", nope_);
  const TensorId v = b_.activation("v", extents_.v);
  const char* q_target = b_.model().mla->q_lora_rank ? "q_b_proj" : "q_proj";
  b_.linear("q_proj", {.x = q_in_, .w = wq_, .in_dims = {q_in}, .out_dims = dims_of(extents_.q), .target = q_target},
            q);
  const auto expand = [&](const char* name, const BlockBuilder::Weight& w, const std::vector<Extent>& out, TensorId y) {
    b_.linear(name,
              {.x = kv_latent_, .w = w, .in_dims = {Dim::kv_latent}, .out_dims = dims_of(out), .target = "kv_b_proj"},
              y);
  };
  expand("k_proj", wk_, nope_, k);
  expand("v_proj", wv_, extents_.v, v);
  // The rotary part of the keys is one for all heads: rotated once, then copied behind each head's other part.
  const TensorId rq = b_.activation("rope_q", extents_.q);
  const TensorId rk = b_.activation("rope_k", extents_.k);
  b_.elementwise("rope", {q, k, kv_down_}, {rq, rk}, {{q, costs.rope_forward}, {rk, costs.rope_forward}},
                 costs.rope_launches);
  return {.q = rq, .k = rk, .v = v};
}

std::vector<TensorId> AttentionProjection::backward(const Outputs& d) {
  if (b_.model().mla) {
    return latent_backward(d);
  }
  const ElementwiseCosts& costs = b_.options().costs;
  const std::string what = b_.model().qk_norm == QkNorm::none ? "d_" : "d_normed_of_";
  const TensorId d_nq = b_.activation(what + "q", extents_.q);
  const TensorId d_nk = b_.activation(what + "k", extents_.k);
  b_.elementwise("rope_backward", {d.q, d.k}, {d_nq, d_nk}, {{d.q, costs.rope_backward}, {d.k, costs.rope_backward}},
                 costs.rope_launches);
  const auto [d_q, d_k] = normed_backward(d_nq, d_nk);
  const TensorId from_q = b_.hidden("d_normed_q");
  const TensorId from_k = b_.hidden("d_normed_k");
  const TensorId from_v = b_.hidden("d_normed_v");
  return BlockBuilder::joined({from_q, from_k, from_v},
                              b_.linear_backward({{"q", x_, wq_, d_q, from_q, {Dim::hidden}, dims_of(extents_.q)},
                                                  {"k", x_, wk_, d_k, from_k, {Dim::hidden}, dims_of(extents_.k)},
                                                  {"v", x_, wv_, d.v, from_v, {Dim::hidden}, dims_of(extents_.v)}}));
}

std::vector<TensorId> AttentionProjection::latent_backward(const Outputs& d) {
  const ElementwiseCosts& costs = b_.options().costs;
  const bool low_rank_q = b_.model().mla->q_lora_rank.has_value();
  const TensorId d_q = b_.activation("d_q", extents_.q);
  const TensorId d_k = b_.activation("d_k_nope", nope_);
  const TensorId d_rotary =
      b_.activation("d_k_rotary", {{.dim = Dim::elements, .size = b_.model().mla->qk_rope_head_dim}});
  b_.elementwise("rope_backward", {d.q, d.k}, {d_q, d_k, d_rotary},
                 {{d.q, costs.rope_backward}, {d.k, costs.rope_backward}}, costs.rope_launches);
  const TensorId from_k = b_.activation("d_kv_latent_k", {kv_latent_extent_});
  const TensorId from_v = b_.activation("d_kv_latent_v", {kv_latent_extent_});
  const TensorId d_q_in = low_rank_q ? b_.activation("d_q_latent", {q_latent_extent_}) : b_.hidden("d_normed_q");
  const auto more = b_.linear_backward(
      {{"q", q_in_, wq_, d_q, d_q_in, {low_rank_q ? Dim::q_latent : Dim::hidden}, dims_of(extents_.q)},
       {"k", kv_latent_, wk_, d_k, from_k, {Dim::kv_latent}, dims_of(nope_)},
       {"v", kv_latent_, wv_, d.v, from_v, {Dim::kv_latent}, dims_of(extents_.v)}});
  const TensorId d_kv_down = b_.activation("d_kv_down", {kv_down_extent_});
  const auto from_kv = BlockBuilder::joined({from_k, from_v, d_rotary, kv_down_}, {more[1], more[2]});
  b_.elementwise("kv_norm_backward", from_kv, {d_kv_down}, b_.fan_in({{from_k, costs.norm_backward}}, from_kv),
                 costs.norm_launches);
  std::vector<TensorId> d_x;
  std::vector<BlockBuilder::Linear> maps;
  if (low_rank_q) {
    const TensorId d_q_down = b_.activation("d_q_down", {q_latent_extent_});
    const auto from_q = BlockBuilder::joined({d_q_in, q_down_}, {more[0]});
    b_.elementwise("q_norm_backward", from_q, {d_q_down}, b_.fan_in({{d_q_in, costs.norm_backward}}, from_q),
                   costs.norm_launches);
    d_x.push_back(b_.hidden("d_normed_q"));
    maps.push_back({"q_down", x_, w_q_down_, d_q_down, d_x.back(), {Dim::hidden}, {Dim::q_latent}});
  } else {
    d_x = BlockBuilder::joined({d_q_in}, {more[0]});
  }
  d_x.push_back(b_.hidden("d_normed_kv"));
  maps.push_back({"kv_down", x_, w_kv_down_, d_kv_down, d_x.back(), {Dim::hidden}, {Dim::kv_down}});
  return BlockBuilder::joined(d_x, b_.linear_backward(maps));
}

}  // namespace ulysim::workload
