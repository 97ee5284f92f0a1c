#include <cstddef>

#include "calibration/cuda/communicator.h"

namespace ulysim::calibration::cuda {
namespace {

class VirtualRanks final : public Communicator {
 public:
  explicit VirtualRanks(std::vector<Member> members) : members_(std::move(members)) {}

  [[nodiscard]] int world() const override { return static_cast<int>(members_.size()); }

  void all_to_all(std::span<const Transfer> transfers, std::int64_t bytes_per_peer) override {
    exchange([&] {
      for (std::size_t to = 0; to < members_.size(); ++to) {
        for (std::size_t from = 0; from < members_.size(); ++from) {
          copy(to, transfers[to].receive, from, transfers[from].send, to, bytes_per_peer);
        }
      }
    });
  }

  void shift(std::span<const Transfer> transfers, std::int64_t bytes) override {
    exchange([&] {
      for (std::size_t from = 0; from < members_.size(); ++from) {
        const std::size_t to = (from + 1) % members_.size();
        copy(to, transfers[to].receive, 0, transfers[from].send, 0, bytes);
      }
    });
  }

  void all_gather(std::span<const Transfer> transfers, std::int64_t bytes_per_rank) override {
    exchange([&] {
      for (std::size_t to = 0; to < members_.size(); ++to) {
        for (std::size_t from = 0; from < members_.size(); ++from) {
          copy(to, transfers[to].receive, from, transfers[from].send, 0, bytes_per_rank);
        }
      }
    });
  }

  void reduce_scatter(std::span<const Transfer> transfers, std::int64_t floats_per_rank) override {
    exchange([&] {
      for (std::size_t to = 0; to < members_.size(); ++to) {
        auto* const sum = static_cast<float*>(transfers[to].receive);
        const auto part = static_cast<std::int64_t>(to) * floats_per_rank;
        Device& device = *members_[to].device;
        device.launch(Fill{.to = sum, .value = 0.0F, .count = floats_per_rank}, Lane::exchange);
        for (const Transfer& from : transfers) {
          device.launch(
              AddFloats{.from = static_cast<const float*>(from.send) + part, .sum = sum, .count = floats_per_rank},
              Lane::exchange);
        }
      }
    });
  }

 private:
  // Ranks have lanes of their own, and nothing orders the lanes of one rank behind those of another.
  template <class Copies>
  void exchange(Copies copies) {
    synchronize();
    copies();
    synchronize();
  }
  void synchronize() {
    for (const Member& member : members_) {
      member.device->synchronize();
    }
  }
  void copy(std::size_t member, void* to, std::size_t to_part, const void* from, std::size_t from_part,
            std::int64_t bytes) {
    const auto part = static_cast<std::size_t>(bytes);
    members_[member].device->copy(static_cast<std::byte*>(to) + to_part * part,
                                  static_cast<const std::byte*>(from) + from_part * part, bytes, Lane::exchange);
  }

  std::vector<Member> members_;
};

}  // namespace

std::unique_ptr<Communicator> make_virtual_ranks(std::vector<Member> members) {
  return std::make_unique<VirtualRanks>(std::move(members));
}

}  // namespace ulysim::calibration::cuda
