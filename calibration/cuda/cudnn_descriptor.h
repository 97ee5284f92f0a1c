#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ulysim::calibration::cuda {

/// What cuDNN said, and its cudnnStatus_t.
class CudnnError : public std::runtime_error {
 public:
  CudnnError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

/// A cudnnBackendDescriptor_t and its life. Numbers are the enumerators of cudnn_graph.h, which stay out of headers.
/// Throws CudnnError.
class Descriptor {
 public:
  explicit Descriptor(int type);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] void* get() const { return descriptor_; }
  Descriptor& set(int attribute, int type, std::int64_t count, const void* values);
  Descriptor& set_descriptor(int attribute, void* value);
  Descriptor& set_count(int attribute, std::int64_t value);
  Descriptor& set_data_type(int attribute, int value);
  Descriptor& finish(const char* what);
  /// Returns how many there were.
  std::int64_t read(int attribute, int type, std::int64_t most, void* values) const;

 private:
  void* descriptor_{};
};

/// Throws CudnnError unless `status` (cudnnStatus_t) is success.
void check_cudnn(int status, const char* what);

}  // namespace ulysim::calibration::cuda
