#include <memory>
#include <stdexcept>

#include "calibration/backend.h"
#include "calibration/cuda/measure.h"
#include "calibration/cuda/sequence_attention.h"
#include "calibration/cuda/virtual_check.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::uint64_t kSeed = 11;

cuda::Mask mask_of(calibration::Mask mask) {
  return mask == calibration::Mask::causal ? cuda::Mask::causal : cuda::Mask::full;
}

BlockShape block_of(const AttentionProbe& probe) {
  if (probe.implementation != kernel::AttentionKernel::cudnn || probe.sequences != 1) {
    throw std::runtime_error("only cuDNN's attention over one sequence is measured");
  }
  return {.queries = probe.queries,
          .keys = probe.keys,
          .heads = probe.heads,
          .kv_heads = probe.kv_heads,
          .head_dim = probe.head_dim,
          .mask = mask_of(probe.mask)};
}

SequenceShape sequence_of(const LayerProbe& probe) {
  return {.tokens = probe.tokens,
          .heads = probe.heads,
          .kv_heads = probe.kv_heads,
          .head_dim = probe.head_dim,
          .mask = mask_of(probe.mask)};
}

SequenceMethod method_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::ulysses:
      return SequenceMethod::ulysses;
    case Scheme::ring:
      return SequenceMethod::ring;
    case Scheme::gathered:
      break;
  }
  return SequenceMethod::gathered;
}

void require_shared(const Rig& rig, const LayerProbe& probe) {
  if (const auto why = why_not(method_of(probe.scheme), sequence_of(probe), rig.communicator->world())) {
    throw ImpossibleProbe(*why);
  }
}

double worst_of(const CheckedErrors& errors) {
  double worst = 0.0;
  for (const double error : {errors.out, errors.dq, errors.dk, errors.dv}) {
    worst = error <= worst ? worst : error;  // a NaN stays one
  }
  return worst;
}

struct Tensors {
  Tensors(const Rig& rig, const SequenceShape& shape, std::int64_t queries, std::int64_t keys)
      : q(rig, 2 * queries * shape.heads * shape.head_dim, bytes(shape, queries, keys)),
        k(rig, 2 * keys * shape.kv_heads * shape.head_dim, bytes(shape, queries, keys)),
        v(rig, 2 * keys * shape.kv_heads * shape.head_dim, bytes(shape, queries, keys)),
        out(rig, 2 * queries * shape.heads * shape.head_dim, bytes(shape, queries, keys)),
        d_out(rig, 2 * queries * shape.heads * shape.head_dim, bytes(shape, queries, keys)),
        dq(rig, 2 * queries * shape.heads * shape.head_dim, bytes(shape, queries, keys)),
        dk(rig, 2 * keys * shape.kv_heads * shape.head_dim, bytes(shape, queries, keys)),
        dv(rig, 2 * keys * shape.kv_heads * shape.head_dim, bytes(shape, queries, keys)) {}

  [[nodiscard]] LocalTensors local(std::size_t m, std::int64_t i) const {
    return {.q = q.at<Bf16>(m, i),
            .k = k.at<Bf16>(m, i),
            .v = v.at<Bf16>(m, i),
            .out = out.at<Bf16>(m, i),
            .d_out = d_out.at<Bf16>(m, i),
            .dq = dq.at<Bf16>(m, i),
            .dk = dk.at<Bf16>(m, i),
            .dv = dv.at<Bf16>(m, i)};
  }

  RotatingBuffers q, k, v, out, d_out, dq, dk, dv;

 private:
  static std::int64_t bytes(const SequenceShape& shape, std::int64_t queries, std::int64_t keys) {
    return 2 * shape.head_dim * (2 * queries * shape.heads + 2 * keys * shape.kv_heads);
  }
};

}  // namespace

Iteration prepare(const Rig& rig, const AttentionProbe& probe) {
  const BlockShape shape = block_of(probe);
  const SequenceShape heads{.heads = shape.heads, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim};
  auto tensors = std::make_shared<Tensors>(rig, heads, shape.queries, shape.keys);
  auto stats = std::make_shared<std::vector<Buffer>>();
  for (CudaDevice* const device : rig.devices) {
    stats->emplace_back(*device, 4 * shape.queries * shape.heads);
  }
  const bool has_forward = probe.pass != Pass::backward;
  const bool has_backward = probe.pass == Pass::backward || probe.pass == Pass::both;
  const auto run = [&rig, shape, tensors, stats](std::int64_t i, bool is_forward) {
    for (std::size_t m = 0; m < rig.members.size(); ++m) {
      const LocalTensors t = tensors->local(m, i);
      auto* const statistics = (*stats)[m].as<float>();
      if (is_forward) {
        rig.members[m].attention->forward(shape, {.q = t.q, .k = t.k, .v = t.v, .out = t.out, .stats = statistics});
      } else {
        rig.members[m].attention->backward(shape, {.q = t.q,
                                                   .k = t.k,
                                                   .v = t.v,
                                                   .out = t.out,
                                                   .stats = statistics,
                                                   .d_out = t.d_out,
                                                   .dq = t.dq,
                                                   .dk = t.dk,
                                                   .dv = t.dv});
      }
    }
  };
  run(0, true);  // Statistics that fit the numbers.
  if (has_backward) {
    run(0, false);  // What the library refuses, or memory is too small for, is to show here.
  }
  return [run, has_forward, has_backward](std::int64_t i) {
    if (has_forward) {
      run(i, true);
    }
    if (has_backward) {
      run(i, false);
    }
  };
}

Iteration prepare(const Rig& rig, const LayerProbe& probe) {
  const SequenceShape shape = sequence_of(probe);
  const SequenceMethod method = method_of(probe.scheme);
  require_shared(rig, probe);
  const std::int64_t tokens = shape.tokens / rig.communicator->world();
  auto tensors = std::make_shared<Tensors>(rig, shape, tokens, tokens);
  std::shared_ptr<SequenceAttention> attention =
      make_sequence_attention(method, shape, {.communicator = rig.communicator, .members = rig.members});
  const auto local = [&rig, tensors](std::int64_t i) {
    std::vector<LocalTensors> result;
    for (std::size_t m = 0; m < rig.members.size(); ++m) {
      result.push_back(tensors->local(m, i));
    }
    return result;
  };
  attention->forward(local(0));
  const bool has_forward = probe.pass != Pass::backward;
  const bool has_backward = probe.pass != Pass::forward;
  return [attention, local, has_forward, has_backward](std::int64_t i) {
    if (has_forward) {
      attention->forward(local(i));
    }
    if (has_backward) {
      attention->backward(local(i));
    }
  };
}

double verify(const Rig& rig, const AttentionProbe& probe) {
  const BlockShape shape = block_of(probe);
  double worst = 0.0;
  for (std::size_t m = 0; m < rig.members.size(); ++m) {
    const auto referee = make_reference_attention(*rig.devices[m]);
    const CheckedErrors errors =
        check_virtual_ranks({.method = SequenceMethod::ulysses,
                             .shape = {.tokens = shape.queries,
                                       .heads = shape.heads,
                                       .kv_heads = shape.kv_heads,
                                       .head_dim = shape.head_dim,
                                       .mask = shape.mask},
                             .world = 1,
                             .seed = kSeed},
                            {.device = rig.devices[m], .tested = rig.members[m].attention, .referee = referee.get()});
    const double error = worst_of(errors);
    worst = error <= worst ? worst : error;
  }
  return worst;
}

double verify(const Rig& rig, const LayerProbe& probe) {
  require_shared(rig, probe);
  const auto referee = make_reference_attention(*rig.devices.front());
  return worst_of(check_ranks({.method = method_of(probe.scheme),
                               .shape = sequence_of(probe),
                               .world = rig.communicator->world(),
                               .seed = kSeed},
                              {.communicator = rig.communicator, .members = rig.members}, *referee));
}

}  // namespace ulysim::calibration::cuda
