#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "calibration/samples/sample.h"

namespace ulysim::calibration {

/// The words of the samples table, each family in the order of its enumeration.
template <class T>
inline constexpr std::array<std::string_view, 0> kNames{};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Mask>{"full", "causal"};
template <>
inline constexpr std::array<std::string_view, 5> kNames<Pass>{"forward", "backward", "both", "forward+kv-write",
                                                              "forward+host-gap"};
template <>
inline constexpr std::array<std::string_view, 6> kNames<CopyPath>{"memory", "kernel",         "pack",
                                                                  "unpack", "host-to-device", "device-to-host"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Via>{"library", "grouped", "symmetric"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<Scheme>{"ulysses", "ring", "gathered"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Regime>{"burst", "sustained"};
template <>
inline constexpr std::array<std::string_view, 4> kNames<kernel::Precision>{"bf16", "fp8", "mxfp8", "nvfp4"};
template <>
inline constexpr std::array<std::string_view, 4> kNames<kernel::AttentionKernel>{"flash-attention-2",
                                                                                 "flash-attention-3", "cudnn", "sdpa"};

template <class T>
[[nodiscard]] constexpr std::string_view name_of(T value) {
  return kNames<T>.at(static_cast<std::size_t>(value));
}

}  // namespace ulysim::calibration
