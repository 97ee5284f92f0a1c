#include "calibration/cuda/virtual_check.h"

#include <cmath>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace ulysim::calibration::cuda {
namespace {

using HostTensor = std::vector<Bf16>;

HostTensor random_tensor(std::int64_t elements, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  HostTensor tensor(static_cast<std::size_t>(elements));
  for (Bf16& element : tensor) {
    element = to_bf16(normal(random));
  }
  return tensor;
}

std::int64_t bytes_of(const HostTensor& tensor) {
  return static_cast<std::int64_t>(tensor.size() * sizeof(Bf16));
}

/// Where a rank's token stands in the whole sequence.
std::int64_t global_token(TokenOrder order, int rank, int world, std::int64_t tokens_here, std::int64_t token) {
  if (order == TokenOrder::contiguous) {
    return rank * tokens_here + token;
  }
  const std::int64_t chunk = tokens_here / 2;
  return token < chunk ? rank * chunk + token : (2 * std::int64_t{world} - 1 - rank) * chunk + token - chunk;
}

struct Tensors {
  HostTensor q{};
  HostTensor k{};
  HostTensor v{};
  HostTensor d_out{};
  HostTensor out{};
  HostTensor dq{};
  HostTensor dk{};
  HostTensor dv{};
};

constexpr HostTensor Tensors::*kInputs[] = {&Tensors::q, &Tensors::k, &Tensors::v, &Tensors::d_out};
constexpr HostTensor Tensors::*kOutputs[] = {&Tensors::out, &Tensors::dq, &Tensors::dk, &Tensors::dv};

/// The same tensors in a device's memory.
class Uploaded {
 public:
  Uploaded(Device& device, const Tensors& tensors) : device_(&device) {
    for (const auto member : kInputs) {
      buffers_.emplace_back(device, bytes_of(tensors.*member));
      device.upload(buffers_.back().as<void>(), (tensors.*member).data(), bytes_of(tensors.*member));
    }
    for (const auto member : kOutputs) {
      const HostTensor poison((tensors.*member).size(), Bf16{0xffff});
      buffers_.emplace_back(device, bytes_of(poison));
      device.upload(buffers_.back().as<void>(), poison.data(), bytes_of(poison));
    }
  }
  [[nodiscard]] LocalTensors local() const {
    return {.q = at(0), .k = at(1), .v = at(2), .out = at(4), .d_out = at(3), .dq = at(5), .dk = at(6), .dv = at(7)};
  }
  void download(Tensors& tensors) const {
    for (std::size_t i = 0; i < std::size(kOutputs); ++i) {
      HostTensor& tensor = tensors.*kOutputs[i];
      device_->download(tensor.data(), at(4 + i), bytes_of(tensor));
    }
  }

 private:
  [[nodiscard]] Bf16* at(std::size_t i) const { return buffers_[i].as<Bf16>(); }
  Device* device_;
  std::vector<Buffer> buffers_;
};

Tensors whole(const SequenceShape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::int64_t q = shape.tokens * shape.heads * shape.head_dim;
  const std::int64_t k = shape.tokens * shape.kv_heads * shape.head_dim;
  Tensors tensors{.q = random_tensor(q, random),
                  .k = random_tensor(k, random),
                  .v = random_tensor(k, random),
                  .d_out = random_tensor(q, random)};
  tensors.out.resize(tensors.q.size());
  tensors.dq.resize(tensors.q.size());
  tensors.dk.resize(tensors.k.size());
  tensors.dv.resize(tensors.k.size());
  return tensors;
}

void run_undivided(const CheckedCase& checked, const CheckedParts& parts, Tensors& tensors) {
  const SequenceShape& shape = checked.shape;
  const Uploaded uploaded(*parts.device, tensors);
  const Buffer stats(*parts.device, 4 * shape.tokens * shape.heads);
  const BlockShape block{.queries = shape.tokens,
                         .keys = shape.tokens,
                         .heads = shape.heads,
                         .kv_heads = shape.kv_heads,
                         .head_dim = shape.head_dim,
                         .mask = shape.mask};
  const LocalTensors t = uploaded.local();
  parts.referee->forward(block, {.q = t.q, .k = t.k, .v = t.v, .out = t.out, .stats = stats.as<float>()});
  parts.referee->backward(block, {.q = t.q,
                                  .k = t.k,
                                  .v = t.v,
                                  .out = t.out,
                                  .stats = stats.as<float>(),
                                  .d_out = t.d_out,
                                  .dq = t.dq,
                                  .dk = t.dk,
                                  .dv = t.dv});
  parts.device->synchronize();
  uploaded.download(tensors);
}

/// Copies the rows of a rank out of the whole tensor, or back into it.
template <class Copy>
void for_rows(const HostTensor& all, std::int64_t tokens, const std::vector<std::int64_t>& places, Copy copy) {
  const std::size_t row = all.size() / static_cast<std::size_t>(tokens);
  for (std::size_t token = 0; token < places.size(); ++token) {
    for (std::size_t j = 0; j < row; ++j) {
      copy(token * row + j, static_cast<std::size_t>(places[token]) * row + j);
    }
  }
}

void run_shared(const CheckedCase& checked, const CheckedParts& parts, Tensors& all) {
  const std::int64_t tokens = checked.shape.tokens;
  const std::int64_t here = tokens / checked.world;
  std::vector<Member> members;
  members.reserve(static_cast<std::size_t>(checked.world));
  for (int rank = 0; rank < checked.world; ++rank) {
    members.push_back({.rank = rank, .device = parts.device, .attention = parts.tested});
  }
  const auto communicator = make_virtual_ranks(members);
  const auto attention =
      make_sequence_attention(checked.method, checked.shape, {.communicator = communicator.get(), .members = members});
  std::vector<std::vector<std::int64_t>> places(members.size());
  std::vector<Tensors> shares(members.size());
  std::vector<Uploaded> uploaded;
  std::vector<LocalTensors> local;
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::int64_t token = 0; token < here; ++token) {
      places[m].push_back(global_token(attention->token_order(), members[m].rank, checked.world, here, token));
    }
    const auto take = [&](HostTensor Tensors::*member) {
      HostTensor& share = shares[m].*member;
      share.resize((all.*member).size() / members.size());
      for_rows(all.*member, tokens, places[m],
               [&](std::size_t to, std::size_t from) { share[to] = (all.*member)[from]; });
    };
    for (const auto member : kInputs) {
      take(member);
    }
    for (const auto member : kOutputs) {
      take(member);
    }
    uploaded.emplace_back(*parts.device, shares[m]);
    local.push_back(uploaded.back().local());
  }
  attention->forward(local);
  attention->backward(local);
  parts.device->synchronize();
  for (std::size_t m = 0; m < members.size(); ++m) {
    uploaded[m].download(shares[m]);
    for (const auto member : kOutputs) {
      for_rows(all.*member, tokens, places[m],
               [&](std::size_t from, std::size_t to) { (all.*member)[to] = (shares[m].*member)[from]; });
    }
  }
}

double relative_error(const HostTensor& result, const HostTensor& referee) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto expected = static_cast<double>(to_float(referee[i]));
    const double error = static_cast<double>(to_float(result[i])) - expected;
    difference += error * error;
    norm += expected * expected;
  }
  return std::sqrt(difference / norm);
}

}  // namespace

CheckedErrors check_virtual_ranks(const CheckedCase& checked, const CheckedParts& parts) {
  Tensors undivided = whole(checked.shape, checked.seed);
  Tensors shared = undivided;
  run_undivided(checked, parts, undivided);
  run_shared(checked, parts, shared);
  return {.out = relative_error(shared.out, undivided.out),
          .dq = relative_error(shared.dq, undivided.dq),
          .dk = relative_error(shared.dk, undivided.dk),
          .dv = relative_error(shared.dv, undivided.dv)};
}

}  // namespace ulysim::calibration::cuda
