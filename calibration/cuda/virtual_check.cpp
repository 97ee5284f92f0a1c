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

void run_undivided(const SequenceShape& shape, Device& device, LocalAttention& referee, Tensors& tensors) {
  const Uploaded uploaded(device, tensors);
  const Buffer stats(device, 4 * shape.tokens * shape.heads);
  const BlockShape block{.queries = shape.tokens,
                         .keys = shape.tokens,
                         .heads = shape.heads,
                         .kv_heads = shape.kv_heads,
                         .head_dim = shape.head_dim,
                         .mask = shape.mask};
  const LocalTensors t = uploaded.local();
  referee.forward(block, {.q = t.q, .k = t.k, .v = t.v, .out = t.out, .stats = stats.as<float>()});
  referee.backward(block, {.q = t.q,
                           .k = t.k,
                           .v = t.v,
                           .out = t.out,
                           .stats = stats.as<float>(),
                           .d_out = t.d_out,
                           .dq = t.dq,
                           .dk = t.dk,
                           .dv = t.dv});
  device.synchronize();
  uploaded.download(tensors);
}

/// Calls with the element of a rank's share and that of the whole tensor, for each that the rank holds.
template <class Call>
void for_rows(const HostTensor& all, std::int64_t tokens, const std::vector<std::int64_t>& places, Call call) {
  const std::size_t row = all.size() / static_cast<std::size_t>(tokens);
  for (std::size_t token = 0; token < places.size(); ++token) {
    for (std::size_t j = 0; j < row; ++j) {
      call(token * row + j, static_cast<std::size_t>(places[token]) * row + j);
    }
  }
}

struct Sums {
  double difference{};
  double norm{};
  [[nodiscard]] double error() const { return std::sqrt(difference / norm); }
};

/// Runs the group on its shares of `all`, whose outputs are the referee's, and holds each share to them.
CheckedErrors run_shared(const CheckedCase& checked, const Group& group, const Tensors& all) {
  const std::vector<Member>& members = group.members;
  const std::int64_t tokens = checked.shape.tokens;
  const std::int64_t here = tokens / checked.world;
  const auto attention = make_sequence_attention(checked.method, checked.shape, group);
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
      share.resize((all.*member).size() / static_cast<std::size_t>(checked.world));
      for_rows(all.*member, tokens, places[m],
               [&](std::size_t to, std::size_t from) { share[to] = (all.*member)[from]; });
    };
    for (const auto member : kInputs) {
      take(member);
    }
    for (const auto member : kOutputs) {
      take(member);
    }
    uploaded.emplace_back(*members[m].device, shares[m]);
    local.push_back(uploaded.back().local());
  }
  attention->forward(local);
  attention->backward(local);
  Sums sums[std::size(kOutputs)];
  for (std::size_t m = 0; m < members.size(); ++m) {
    members[m].device->synchronize();
    uploaded[m].download(shares[m]);
    for (std::size_t i = 0; i < std::size(kOutputs); ++i) {
      const HostTensor& share = shares[m].*kOutputs[i];
      const HostTensor& referee = all.*kOutputs[i];
      for_rows(referee, tokens, places[m], [&](std::size_t in_share, std::size_t in_whole) {
        const auto expected = static_cast<double>(to_float(referee[in_whole]));
        const double error = static_cast<double>(to_float(share[in_share])) - expected;
        sums[i].difference += error * error;
        sums[i].norm += expected * expected;
      });
    }
  }
  return {.out = sums[0].error(), .dq = sums[1].error(), .dk = sums[2].error(), .dv = sums[3].error()};
}

}  // namespace

CheckedErrors check_ranks(const CheckedCase& checked, const Group& group, LocalAttention& referee) {
  Tensors all = whole(checked.shape, checked.seed);
  run_undivided(checked.shape, *group.members.front().device, referee, all);
  return run_shared(checked, group, all);
}

CheckedErrors check_virtual_ranks(const CheckedCase& checked, const CheckedParts& parts) {
  std::vector<Member> members;
  members.reserve(static_cast<std::size_t>(checked.world));
  for (int rank = 0; rank < checked.world; ++rank) {
    members.push_back({.rank = rank, .device = parts.device, .attention = parts.tested});
  }
  const auto communicator = make_virtual_ranks(members);
  return check_ranks(checked, {.communicator = communicator.get(), .members = members}, *parts.referee);
}

}  // namespace ulysim::calibration::cuda
