#include "sim/scenario/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/scenario/lengths.h"
#include "sim/scenario/training.h"

namespace ulysim::scenario {
namespace {

using config::Node;

constexpr std::int64_t kLargestMultiple = 1 << 20;
constexpr std::int64_t kMostPadded = 1024;

/// The lengths listed under `name`; nothing when one is wrong, which was reported.
std::optional<std::vector<std::int64_t>> read_list(Section& section, std::string_view name) {
  const std::size_t before = section.diagnostics().list().size();
  std::vector<std::int64_t> lengths;
  for (const Node* item : section.items(name)) {
    const auto length = config::read<std::int64_t>(*item, section.path_of(name), section.diagnostics());
    if (length && (*length < 1 || *length > kLongestSequence)) {
      section.diagnostics().error(
          item->where, fmt::format("'{}': {} is outside 1 to {}", section.path_of(name), *length, kLongestSequence));
    }
    lengths.push_back(length.value_or(1));
  }
  if (section.diagnostics().list().size() != before) {
    return std::nullopt;
  }
  const std::int64_t most = name == "packed" ? kMostDocuments : kMostPadded;
  if (lengths.empty() || static_cast<std::int64_t>(lengths.size()) > most) {
    section.error(name, fmt::format("{} lengths; 1 to {} are needed", lengths.size(), most));
    return std::nullopt;
  }
  return lengths;
}

void set_documents(Section& section, std::string_view name, std::vector<std::int64_t> ends, strategies::Plan& plan) {
  if (ends.back() > kLongestSequence) {
    section.error(name, fmt::format("{} tokens in all; at most {}", ends.back(), kLongestSequence));
    return;
  }
  plan.sequence_length = ends.back();
  plan.documents = std::make_shared<const std::vector<std::int64_t>>(std::move(ends));
}

void read_packed(Section& section, strategies::Plan& plan) {
  auto lengths = read_list(section, "packed");
  if (!lengths) {
    return;
  }
  for (std::size_t i = 1; i < lengths->size(); ++i) {
    (*lengths)[i] += (*lengths)[i - 1];  // at most 2^16 of 2^31: no overflow
  }
  set_documents(section, "packed", *std::move(lengths), plan);
}

void read_padded(Section& section, Training& training) {
  auto lengths = read_list(section, "padded");
  if (!lengths) {
    return;
  }
  training.options.sequence_length = *std::max_element(lengths->begin(), lengths->end());
  training.options.micro_batch = static_cast<std::int64_t>(lengths->size());
  training.options.lengths = *std::move(lengths);
}

void read_distribution(Section& outer, strategies::Plan& plan) {
  const std::size_t before = outer.diagnostics().list().size();
  Section section(*outer.find("distribution"), outer.path_of("distribution"), {"distribution"}, outer.diagnostics());
  using Kind = LengthDistribution::Kind;
  LengthDistribution d;
  const auto kind = section.word("kind");
  if (!kind && section.diagnostics().list().size() == before) {
    section.error("kind", "missing (constant, uniform or lognormal)");
  }
  d.kind = static_cast<Kind>(kind.value_or(0));
  const auto pack_to = section.integer("pack_to", {1, kLongestSequence});
  if (!pack_to && section.find("pack_to") == nullptr) {
    section.error("pack_to", "missing (tokens of the sequence that the documents fill)");
  }
  const auto mean = section.integer("mean", {1, kLongestSequence});
  const auto sigma = section.number("sigma", 0.0, 4.0);
  const auto min = section.integer("min", {1, kLongestSequence});
  const auto max = section.integer("max", {1, kLongestSequence});
  d.seed = static_cast<std::uint64_t>(section.integer("seed", {0, kMostTokens}).value_or(0));
  section.finish();
  if (section.diagnostics().list().size() != before) {
    return;
  }
  if (d.kind == Kind::uniform ? !min || !max || mean : !mean.has_value()) {
    section.error_here(d.kind == Kind::uniform ? "uniform lengths need 'min' and 'max', and no 'mean'"
                                               : "'mean' is missing");
    return;
  }
  if (sigma && d.kind != Kind::lognormal) {
    section.error("sigma", "belongs to lognormal lengths only");
    return;
  }
  d.mean = static_cast<double>(mean.value_or(1));
  d.sigma = sigma.value_or(1.0);
  d.min = min.value_or(1);
  d.max = max.value_or(kLongestSequence);
  if (d.min > d.max || d.min > *pack_to) {
    section.error("min", fmt::format("{} is above {}", d.min, std::min(d.max, *pack_to)));
    return;
  }
  std::vector<std::int64_t> ends = draw_documents(d, *pack_to);
  if (static_cast<std::int64_t>(ends.size()) > kMostDocuments) {
    section.error_here(fmt::format("more than {} documents in {} tokens", kMostDocuments, *pack_to));
    return;
  }
  set_documents(outer, "distribution", std::move(ends), plan);
}

void read_mapping(Section& outer, const Node& node, Training& training) {
  Section section(node, outer.path_of("sequence_length"), {"sequence_length"}, outer.diagnostics());
  int given = 0;
  for (const char* form : {"packed", "padded", "distribution"}) {
    given += section.find(form) != nullptr ? 1 : 0;
  }
  if (given != 1) {
    section.error_here("one of 'packed', 'padded' and 'distribution' is needed");
  } else if (section.find("packed") != nullptr) {
    read_packed(section, training.options);
  } else if (section.find("padded") != nullptr) {
    read_padded(section, training);
  } else {
    read_distribution(section, training.options);
  }
  section.finish();
}

void read_padding(Section& section, Padding& padding) {
  const Node* node = section.find("pad_to_multiple");
  if (node == nullptr) {
    return;
  }
  if (node->text == "none" || node->text == "auto") {
    padding = {.rule = node->text == "none" ? Padding::Rule::none : Padding::Rule::automatic};
  } else if (const auto of = section.integer("pad_to_multiple", {1, kLargestMultiple})) {
    padding = {.rule = Padding::Rule::multiple, .of = *of};
  }
}

}  // namespace

std::string text_of(Padding padding) {
  switch (padding.rule) {
    case Padding::Rule::none:
      return "none";
    case Padding::Rule::automatic:
      return "auto";
    case Padding::Rule::multiple:
      break;
  }
  return fmt::to_string(padding.of);
}

void read_sequence(Section& section, Training& training) {
  const auto micro_batch = section.integer("micro_batch", {1, kMostSequences});
  training.options.micro_batch = micro_batch.value_or(training.options.micro_batch);
  read_padding(section, training.padding);
  if (const Node* length = section.find("sequence_length")) {
    // 1 in place of what cannot be read: that was reported, and is not missing in every plan beside.
    training.options.sequence_length = 1;
    training.options.documents.reset();
    training.options.lengths.clear();
    if (length->kind == Node::Kind::mapping) {
      read_mapping(section, *length, training);
    } else if (length->kind == Node::Kind::sequence) {
      section.error("sequence_length",
                    "lengths are listed as {packed: [...]} (one sequence) or {padded: [...]} (one each)");
    } else {
      training.options.sequence_length = section.integer("sequence_length", {1, kLongestSequence}).value_or(1);
    }
  }
  const auto sequences = static_cast<std::int64_t>(training.options.lengths.size());
  if (micro_batch && sequences > 0 && *micro_batch != sequences) {
    section.error("micro_batch",
                  fmt::format("{}, but {} lengths are padded into each micro batch", *micro_batch, sequences));
  }
}

void pad(Padding padding, strategies::Plan& plan) {
  if (padding.rule == Padding::Rule::none) {
    return;
  }
  const std::int64_t multiple = padding.rule == Padding::Rule::automatic ? plan.sequence_parts() : padding.of;
  const std::int64_t padded = (plan.sequence_length + multiple - 1) / multiple * multiple;
  if (padded == plan.sequence_length) {
    return;
  }
  if (plan.lengths.empty()) {
    plan.lengths = {plan.sequence_length};
  }
  if (plan.documents) {
    std::vector<std::int64_t> ends = *plan.documents;
    ends.push_back(padded);
    plan.documents = std::make_shared<const std::vector<std::int64_t>>(std::move(ends));
  }
  plan.sequence_length = padded;
}

}  // namespace ulysim::scenario
