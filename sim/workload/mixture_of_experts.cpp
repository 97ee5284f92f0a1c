#include "sim/workload/mixture_of_experts.h"

#include "sim/base/check.h"

namespace ulysim::workload {

namespace {

// What must move at the least, with the kernels that eager code launches for it (assumed: no profile measures them).
constexpr double kScoreTraffic = 12.0;       // softmax, top-k and its one-hot in fp32, per score
constexpr std::int64_t kRouterKernels = 4;   // cast, softmax, top-k, normalisation
constexpr std::int64_t kPermuteKernels = 2;  // sort of the indices, copy of the rows
constexpr double kCopy = 4.0;                // bf16 read and written
constexpr double kRead = 2.0;

Extent hidden_of(const BlockBuilder& b) {
  return {.dim = Dim::hidden, .size = b.model().hidden};
}

}  // namespace

MixtureOfExperts::MixtureOfExperts(BlockBuilder& builder) : b_(builder) {
  ULYSIM_CHECK(b_.model().moe.has_value(), "{} has no experts", b_.model().name);
  const MoeSpec& moe = *b_.model().moe;
  scores_ = {.dim = Dim::router, .size = moe.experts};
  choices_ = {.dim = Dim::elements, .size = moe.top_k};
  w_router_ = b_.weight("w_router", {hidden_of(b_), scores_});
  if (moe.shared_experts > 0) {
    shared_.emplace(b_, FeedForward::Spec{.prefix = "shared_", .width = moe.shared_experts * moe.shared_ffn});
  }
  const std::int64_t visits = b_.options().batch * b_.options().sequence_length * moe.top_k;
  experts_.emplace(b_,
                   FeedForward::Spec{.prefix = "expert_",
                                     .width = moe.expert_ffn,
                                     .rows = {{.dim = Dim::experts, .size = moe.experts},
                                              {.dim = Dim::slots, .size = (visits + moe.experts - 1) / moe.experts}}});
}

std::vector<TensorId> MixtureOfExperts::forward(TensorId x) {
  x_ = x;
  std::vector<TensorId> outputs;
  if (shared_) {
    b_.in(Phase::forward, Region::mlp);
    outputs.push_back(shared_->forward(x));
  }
  b_.in(Phase::forward);
  logits_ = b_.activation("router_logits", {scores_}, 4);
  b_.gemm("router", x, w_router_.value, logits_, {.m = Rows{}.dims, .n = {Dim::router}, .k = {Dim::hidden}});
  probabilities_ = b_.activation("router_probabilities", {choices_}, 4);
  b_.elementwise("top_k", {logits_}, {probabilities_}, {{logits_, kScoreTraffic}}, kRouterKernels);
  b_.in(Phase::forward, Region::experts);
  const TensorId routed = experts_->activation("routed", hidden_of(b_));
  b_.elementwise("permute", {x, probabilities_}, {routed}, {{routed, kCopy}}, kPermuteKernels);
  // The host needs to know how many tokens each expert got (Megatron-LM moe/token_dispatcher.py, .cpu()).
  b_.block().body(Phase::forward).ops.back().drains = true;
  expert_out_ = experts_->forward(routed);
  const TensorId out = b_.hidden("moe_out");
  b_.elementwise("unpermute", {expert_out_, probabilities_}, {out}, {{expert_out_, kRead}, {out, kRead}},
                 kPermuteKernels);
  b_.in(Phase::forward);
  outputs.insert(outputs.begin(), out);
  return outputs;
}

std::vector<TensorId> MixtureOfExperts::backward(TensorId d_y) {
  b_.in(Phase::backward, Region::experts);
  const TensorId d_out = experts_->activation("d_expert_mlp_out", hidden_of(b_));
  const TensorId d_probabilities = b_.activation("d_router_probabilities", {choices_}, 4);
  b_.elementwise("unpermute_backward", {d_y, expert_out_, probabilities_}, {d_out, d_probabilities},
                 {{d_y, kRead}, {d_out, kCopy}}, kPermuteKernels);
  b_.scratch_like(d_out, b_.options().costs.experts_combine_scratch);
  std::vector<TensorId> d_routed = experts_->backward(d_out);
  std::vector<TensorId> d_x{b_.hidden("d_normed1_routed")};
  b_.elementwise("permute_backward", d_routed, {d_x.back()},
                 b_.fan_in({{d_routed.front(), kRead}, {d_x.back(), kRead}}, d_routed), kPermuteKernels);
  b_.in(Phase::backward);
  b_.accumulate("accumulate_experts", experts_->weights());
  const TensorId d_logits = b_.activation("d_router_logits", {scores_}, 4);
  b_.elementwise("top_k_backward", {d_probabilities, probabilities_, logits_}, {d_logits}, {{d_logits, kScoreTraffic}},
                 kRouterKernels);
  d_x.push_back(b_.hidden("d_normed1_router"));
  b_.plain_linear_backward({"router", x_, w_router_, d_logits, d_x.back(), {Dim::hidden}, {Dim::router}});
  if (shared_) {
    b_.in(Phase::backward, Region::mlp);
    const std::vector<TensorId> from_shared = shared_->backward(d_y);
    d_x.insert(d_x.end(), from_shared.begin(), from_shared.end());
    b_.in(Phase::backward);
  }
  return d_x;
}

std::vector<BlockBuilder::Weight> MixtureOfExperts::weights() const {
  std::vector<BlockBuilder::Weight> all{w_router_};
  if (shared_) {
    const auto shared = shared_->weights();
    all.insert(all.end(), shared.begin(), shared.end());
  }
  return all;
}

}  // namespace ulysim::workload
