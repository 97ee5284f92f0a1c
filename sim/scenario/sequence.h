#pragma once

#include <cstdint>
#include <string>

#include "sim/scenario/section.h"
#include "sim/strategies/plan.h"

namespace ulysim::scenario {

struct Training;

/// What becomes of a length that the plan's split does not divide.
struct Padding {
  enum class Rule : std::uint8_t {
    none,       ///< the plan is infeasible
    automatic,  ///< filled up to what the plan needs: tensor · ulysses · ring, twice that for zigzag
    multiple,   ///< filled up to a multiple of `of`
  };
  Rule rule{Rule::none};
  std::int64_t of{1};
};
/// "none", "auto", "256".
[[nodiscard]] std::string text_of(Padding padding);

/// `sequence_length`: one length, {packed: [lengths]}, {padded: [lengths]} or {distribution: …}; `pad_to_multiple`.
void read_sequence(Section& section, Training& training);

/// Fills the plan's sequences up. Padding of packed documents is a document of its own.
void pad(Padding padding, strategies::Plan& plan);

}  // namespace ulysim::scenario
