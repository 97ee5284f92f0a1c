#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "calibration/cuda/actions.h"
#include "calibration/cuda/checked_numbers.h"
#include "calibration/cuda/cudnn_attention.h"
#include "calibration/cuda/virtual_check.h"

namespace ulysim::calibration::cuda {
namespace {

// bf16 rounds to 2⁻⁹ = 0.2%; results and block results are rounded, sums are not.
constexpr double kTolerance = 1e-2;

class Verdicts {
 public:
  void add(std::string_view what, double error, double tolerance) {
    // Written so that not-a-number fails.
    const bool good = error <= tolerance;
    failed_ += good ? 0 : 1;
    ++all_;
    fmt::print("{} {:60} {:.2e}\n", good ? "ok    " : "FAILED", what, error);
  }
  [[nodiscard]] int finish() const {
    fmt::print("{} of {} checks passed\n", all_ - failed_, all_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  int all_{};
  int failed_{};
};

bool same_bytes(const std::vector<Vector16>& a, const std::vector<Vector16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Vector16)) == 0;
}

/// 1 if packing on the GPU differs from packing on the host (which the unit tests hold to its formula), or unpacking
/// does not bring back what was packed; else 0.
double pack_mistakes(CudaDevice& device, HeadSplit split, std::int64_t tokens, std::int64_t vectors) {
  const auto values = numbered_vectors(tokens * split.heads().divisor() * vectors);
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(Vector16));
  const std::int64_t packed_bytes = tokens * split.peers() * split.per_peer().divisor() * vectors * 16;
  const Buffer from(device, bytes);
  const Buffer packed(device, packed_bytes);
  const Buffer back(device, bytes);
  device.upload(from.as<void>(), values.data(), bytes);
  device.launch(PackHeads{.from = from.as<Vector16>(),
                          .to = packed.as<Vector16>(),
                          .tokens = tokens,
                          .split = split,
                          .vectors = vectors},
                Lane::compute);
  std::vector<Vector16> result(static_cast<std::size_t>(packed_bytes / 16));
  std::vector<Vector16> expected(result.size());
  device.download(result.data(), packed.as<void>(), packed_bytes);
  run_on_host(
      PackHeads{.from = values.data(), .to = expected.data(), .tokens = tokens, .split = split, .vectors = vectors});
  const bool packed_right = same_bytes(result, expected);
  if (split.replicas().divisor() > 1) {
    return packed_right ? 0.0 : 1.0;  // Unpacking adds replicas up: not the inverse.
  }
  device.launch(UnpackHeads{.from = packed.as<Vector16>(),
                            .to = back.as<Vector16>(),
                            .tokens = tokens,
                            .split = split,
                            .vectors = vectors},
                Lane::compute);
  std::vector<Vector16> again(values.size());
  device.download(again.data(), back.as<void>(), bytes);
  return packed_right && same_bytes(again, values) ? 0.0 : 1.0;
}

void check_attention(CudaDevice& device, LocalAttention& tested, LocalAttention& referee, Verdicts& verdicts) {
  std::uint64_t seed = 1;
  for (const SequenceMethod method : {SequenceMethod::ulysses, SequenceMethod::ring, SequenceMethod::gathered}) {
    for (const int world : {1, 2, 4, 8}) {
      for (const Mask mask : {Mask::causal, Mask::full}) {
        for (const std::int64_t kv_heads : {8, 2}) {
          if (method == SequenceMethod::gathered && kv_heads == 8) {
            continue;  // Each of its many blocks is a plan that cuDNN compiles.
          }
          const CheckedCase checked{
              .method = method,
              .shape = {.tokens = 1024, .heads = 8, .kv_heads = kv_heads, .head_dim = 128, .mask = mask},
              .world = world,
              .seed = seed++};
          const std::string name = fmt::format("{} on {} ranks, heads 8:{}, {}", name_of(method), world, kv_heads,
                                               mask == Mask::causal ? "causal" : "full");
          try {
            const CheckedErrors errors =
                check_virtual_ranks(checked, {.device = &device, .tested = &tested, .referee = &referee});
            verdicts.add(name + ", forward", errors.out, kTolerance);
            verdicts.add(name + ", gradient of Q", errors.dq, kTolerance);
            verdicts.add(name + ", gradient of K", errors.dk, kTolerance);
            verdicts.add(name + ", gradient of V", errors.dv, kTolerance);
          } catch (const std::runtime_error& error) {
            verdicts.add(fmt::format("{}: {}", name, error.what()), 1.0, kTolerance);
          }
        }
      }
    }
  }
}

}  // namespace

int check_results(const GpuFacts& gpu) {
  const auto device = make_cuda_device(gpu);
  const auto tested = make_cudnn_attention(*device);
  const auto referee = make_reference_attention(*device);
  Verdicts verdicts;
  for (const HeadSplit split : {HeadSplit(8, 1), HeadSplit(8, 2), HeadSplit(32, 8), HeadSplit(2, 8)}) {
    verdicts.add(fmt::format("pack and unpack {} heads for {} ranks, exactly", split.heads().divisor(), split.peers()),
                 pack_mistakes(*device, split, 1000, 16), 0.0);
  }
  check_attention(*device, *tested, *referee, verdicts);
  return verdicts.finish();
}

}  // namespace ulysim::calibration::cuda
