#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "calibration/cuda/checked_numbers.h"
#include "calibration/cuda/measure.h"

namespace ulysim::calibration::cuda {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kBf16 = 2;

/// `bytes` as nccl-tests counts them: all that a rank ends with (all-gather) or starts with (the others).
void run(const Rig& rig, const CollectiveProbe& probe, std::span<const Transfer> transfers) {
  NcclCommunicator& nccl = *rig.communicator;
  const std::int64_t part = probe.bytes / nccl.world();
  switch (probe.collective) {
    case Collective::all_to_all:
      return probe.via == Via::grouped     ? nccl.all_to_all_grouped(transfers, part)
             : probe.via == Via::symmetric ? nccl.all_to_all_symmetric(transfers, part)
                                           : nccl.all_to_all(transfers, part);
    case Collective::send_recv:
      return nccl.shift(transfers, probe.bytes);
    case Collective::all_gather:
      return nccl.all_gather(transfers, part);
    case Collective::reduce_scatter:
      return nccl.reduce_scatter(transfers, part / kFloat);
    case Collective::all_reduce:
      return nccl.all_reduce(transfers, probe.bytes / kBf16);
    default:
      throw std::runtime_error("this collective is not measured");
  }
}

void require_possible(const CollectiveProbe& probe) {
  if (probe.in_place || (probe.via != Via::library && probe.collective != Collective::all_to_all)) {
    throw std::runtime_error("only an all-to-all is called in several ways, and nothing in place");
  }
}

CheckedNumbers numbers_of(const CollectiveProbe& probe, int world) {
  const bool adds = probe.collective == Collective::all_reduce || probe.collective == Collective::reduce_scatter;
  return adds ? CheckedNumbers(world) : CheckedNumbers();
}

/// Element `i` of what a rank receives. `elements` are sent by each (all-gather: received from all).
float received(const CollectiveProbe& probe, int rank, int world, std::int64_t i, std::int64_t elements) {
  const std::int64_t part = elements / world;
  const CheckedNumbers numbers = numbers_of(probe, world);
  float sum = 0.0F;
  switch (probe.collective) {
    case Collective::all_to_all:
      return numbers.sent(static_cast<int>(i / part), rank * part + i % part);
    case Collective::all_gather:
      return numbers.sent(static_cast<int>(i / part), i % part);
    case Collective::send_recv:
      return numbers.sent((rank + world - 1) % world, i);
    default:
      for (int r = 0; r < world; ++r) {
        sum += numbers.sent(r, (probe.collective == Collective::reduce_scatter ? rank * part : 0) + i);
      }
      return sum;
  }
}

template <class T>
T as(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return to_bf16(value);
  }
}

/// Whether every member of this process received what it should; `T` is what the collective computes in.
template <class T>
bool is_right(const Rig& rig, const CollectiveProbe& probe) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint16_t>;
  const int world = rig.communicator->world();
  const std::int64_t elements = probe.bytes / static_cast<std::int64_t>(sizeof(T));
  const bool scatters = probe.collective == Collective::reduce_scatter;
  std::vector<Buffer> buffers;
  std::unique_ptr<SymmetricBuffers> symmetric;
  if (probe.via == Via::symmetric) {
    symmetric = rig.communicator->allocate_symmetric(2 * probe.bytes);
  }
  std::vector<Transfer> transfers;
  for (std::size_t m = 0; m < rig.devices.size(); ++m) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < elements; ++i) {
      values.push_back(as<T>(numbers_of(probe, world).sent(rig.members[m].rank, i)));
    }
    std::byte* memory = nullptr;
    if (symmetric) {
      memory = static_cast<std::byte*>(symmetric->at(m));
    } else {
      memory = buffers.emplace_back(*rig.devices[m], 2 * probe.bytes).as<std::byte>();
    }
    rig.devices[m]->upload(memory, values.data(), probe.bytes);
    rig.devices[m]->upload(memory + probe.bytes, std::vector<std::byte>(static_cast<std::size_t>(probe.bytes)).data(),
                           probe.bytes);
    transfers.push_back({.send = memory, .receive = memory + probe.bytes});
  }
  run(rig, probe, transfers);
  bool right = true;
  for (std::size_t m = 0; m < rig.devices.size(); ++m) {
    rig.devices[m]->synchronize();
    std::vector<T> result(static_cast<std::size_t>(scatters ? elements / world : elements));
    rig.devices[m]->download(result.data(), transfers[m].receive, static_cast<std::int64_t>(result.size() * sizeof(T)));
    for (std::size_t i = 0; i < result.size(); ++i) {
      const T wanted = as<T>(received(probe, rig.members[m].rank, world, static_cast<std::int64_t>(i), elements));
      right = right && std::bit_cast<Bits>(result[i]) == std::bit_cast<Bits>(wanted);
    }
  }
  return right;
}

}  // namespace

Iteration prepare(const Rig& rig, const CollectiveProbe& probe) {
  require_possible(probe);
  if (probe.via == Via::symmetric) {
    // One pair of buffers: windows are few, and what another GPU wrote is in no cache of this one.
    std::shared_ptr<SymmetricBuffers> buffers = rig.communicator->allocate_symmetric(2 * probe.bytes);
    return [&rig, probe, buffers](std::int64_t) {
      std::vector<Transfer> list;
      for (std::size_t m = 0; m < rig.devices.size(); ++m) {
        auto* const memory = static_cast<std::byte*>(buffers->at(m));
        list.push_back({.send = memory, .receive = memory + probe.bytes});
      }
      run(rig, probe, list);
    };
  }
  auto send = std::make_shared<RotatingBuffers>(rig, probe.bytes, 2 * probe.bytes);
  auto receive = std::make_shared<RotatingBuffers>(rig, probe.bytes, 2 * probe.bytes);
  return [&rig, probe, send, receive](std::int64_t i) {
    std::vector<Transfer> list;
    for (std::size_t m = 0; m < rig.devices.size(); ++m) {
      list.push_back({.send = send->at<void>(m, i), .receive = receive->at<void>(m, i)});
    }
    run(rig, probe, list);
  };
}

double verify(const Rig& rig, const CollectiveProbe& probe) {
  require_possible(probe);
  const bool floats = probe.collective == Collective::reduce_scatter;
  return (floats ? is_right<float>(rig, probe) : is_right<Bf16>(rig, probe)) ? 0.0 : 1.0;
}

}  // namespace ulysim::calibration::cuda
