#include <fmt/format.h>

#include <memory>

#include "calibration/cuda/measure.h"
#include "calibration/cuda/sequence_attention.h"

namespace ulysim::calibration::cuda {
namespace {

// 64:8 heads first, for which cuDNN's own figures are public; then Llama-3-8B's heads, whole and as a rank of eight
// has them, and what a ring does off the diagonal.
constexpr BlockShape kShapes[] = {
    {.queries = 4096, .keys = 4096, .heads = 64, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 8192, .keys = 8192, .heads = 64, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 16384, .keys = 16384, .heads = 64, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 32768, .keys = 32768, .heads = 64, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 2048, .keys = 2048, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 8192, .keys = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal},
    {.queries = 65536, .keys = 65536, .heads = 4, .kv_heads = 1, .head_dim = 128, .mask = Mask::causal},
    {.queries = 131072, .keys = 131072, .heads = 4, .kv_heads = 1, .head_dim = 128, .mask = Mask::causal},
    {.queries = 8192, .keys = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::full},
    {.queries = 8192, .keys = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::full},
    {.queries = 4096, .keys = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::full},
    {.queries = 8192, .keys = 8192, .heads = 32, .kv_heads = 32, .head_dim = 64, .mask = Mask::causal},
};

constexpr double kBackwardFlops = 2.5;

double forward_flops(const BlockShape& shape) {
  const auto queries = static_cast<double>(shape.queries);
  const auto keys = static_cast<double>(shape.keys);
  const double pairs = shape.mask == Mask::causal ? queries * (queries + 1.0) / 2.0 : queries * keys;
  return 4.0 * static_cast<double>(shape.head_dim * shape.heads) * pairs;
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

Iteration local_attention(const Rig& rig, const BlockShape& shape, std::string_view direction) {
  const SequenceShape heads{.heads = shape.heads, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim};
  auto tensors = std::make_shared<Tensors>(rig, heads, shape.queries, shape.keys);
  auto stats = std::make_shared<std::vector<Buffer>>();
  for (CudaDevice* const device : rig.devices) {
    stats->emplace_back(*device, 4 * shape.queries * shape.heads);
  }
  const bool forward = direction == "forward";
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
  if (!forward) {
    run(0, true);  // Statistics that fit the numbers.
  }
  return [run, forward](std::int64_t i) { run(i, forward); };
}

Iteration shared_attention(const Rig& rig, SequenceMethod method, const SequenceShape& shape,
                           std::string_view direction) {
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
  if (direction == "forward") {
    return [attention, local](std::int64_t i) { attention->forward(local(i)); };
  }
  return [attention, local](std::int64_t i) { attention->backward(local(i)); };
}

}  // namespace

void measure_attention(const Rig& rig, Recorder& recorder) {
  for (const BlockShape& shape : kShapes) {
    for (const std::string_view direction : {"forward", "backward"}) {
      const double flops = forward_flops(shape) * (direction == "forward" ? 1.0 : kBackwardFlops);
      recorder.sample("attention",
                      fmt::format("by=cudnn direction={} mask={} heads={} kv_heads={} head_dim={} queries={} keys={}",
                                  direction, shape.mask == Mask::causal ? "causal" : "full", shape.heads,
                                  shape.kv_heads, shape.head_dim, shape.queries, shape.keys),
                      {.group = direction == "forward" ? "attention forward" : "attention backward",
                       .value = flops,
                       .unit = "TFLOP/s"},
                      [&] { return local_attention(rig, shape, direction); });
    }
  }
}

void measure_sequence_attention(const Rig& rig, Recorder& recorder) {
  const int world = rig.communicator->world();
  if (world == 1) {
    return;  // Nothing is shared.
  }
  for (const std::int64_t tokens_here : {2048, 8192, 32768}) {
    for (const SequenceMethod method : {SequenceMethod::ulysses, SequenceMethod::ring, SequenceMethod::gathered}) {
      const SequenceShape shape{
          .tokens = tokens_here * world, .heads = 32, .kv_heads = 8, .head_dim = 128, .mask = Mask::causal};
      if (why_not(method, shape, world)) {
        continue;
      }
      for (const std::string_view direction : {"forward", "backward"}) {
        const double flops = forward_flops({.queries = shape.tokens,
                                            .keys = shape.tokens,
                                            .heads = shape.heads,
                                            .kv_heads = shape.kv_heads,
                                            .head_dim = shape.head_dim,
                                            .mask = shape.mask}) *
                             (direction == "forward" ? 1.0 : kBackwardFlops) / world;
        recorder.sample(
            "sequence-attention",
            fmt::format("method={} direction={} mask=causal heads=32 kv_heads=8 head_dim=128 tokens={} ranks={}",
                        name_of(method), direction, shape.tokens, world),
            {.group = name_of(method), .value = flops, .unit = "TFLOP/s"},
            [&] { return shared_attention(rig, method, shape, direction); });
      }
    }
  }
}

}  // namespace ulysim::calibration::cuda
