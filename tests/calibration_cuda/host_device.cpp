#include "tests/calibration_cuda/host_device.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <variant>

namespace ulysim::calibration::cuda {
namespace {

class HostDevice final : public Device {
 public:
  [[nodiscard]] void* allocate(std::int64_t bytes) override {
    constexpr std::size_t kAlignment = 256;
    void* const memory = ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment});
    std::memset(memory, 0xff, static_cast<std::size_t>(bytes));
    return memory;
  }
  void release(void* memory) noexcept override {
    constexpr std::size_t kAlignment = 256;
    ::operator delete (memory, std::align_val_t{kAlignment});
  }
  void launch(const Work& work, Lane /*lane*/) override {
    std::visit([](const auto& items) { run_on_host(items); }, work);
  }
  void copy(void* to, const void* from, std::int64_t bytes, Lane /*lane*/) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void upload(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes, Lane::compute); }
  void download(void* to, const void* from, std::int64_t bytes) override { copy(to, from, bytes, Lane::compute); }
  void order(Lane /*before*/, Lane /*after*/) override {}
  void synchronize() override {}
  [[nodiscard]] void* stream(Lane /*lane*/) override { return nullptr; }
};

}  // namespace

std::unique_ptr<Device> make_host_device() {
  return std::make_unique<HostDevice>();
}

}  // namespace ulysim::calibration::cuda
