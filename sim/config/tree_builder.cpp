#include "sim/config/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ulysim::config {
namespace {

constexpr std::size_t kMostShown = 60;

std::string shown(const std::string& text) {
  return text.size() <= kMostShown ? text : text.substr(0, kMostShown) + "…";
}

/// Length of the UTF-8 sequence at the front of `text`, or 0 when it is none (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return follows(1) ? 2 : 0;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool legal = (lead != 0xE0 || byte(1) >= 0xA0) && (lead != 0xED || byte(1) <= 0x9F);
    return legal && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool legal = (lead != 0xF0 || byte(1) >= 0x90) && (lead != 0xF4 || byte(1) <= 0x8F);
    return legal && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

Place PlaceCounter::at(std::size_t offset) {
  for (; offset_ < offset && offset_ < text_.size(); ++offset_) {
    if (text_[offset_] == '\n') {
      ++place_.line;
      place_.column = 1;
    } else {
      ++place_.column;
    }
  }
  return place_;
}

std::string_view checked_text(std::string_view text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  const auto refuse = [&](std::size_t offset, std::string message) {
    const Place place = PlaceCounter(text).at(offset);
    throw InputError(
        {{.where = {.file = file, .line = place.line, .column = place.column}, .message = std::move(message)}});
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) {
      refuse(i, fmt::format("control character 0x{:02X}", byte));
    }
    const std::size_t length = utf8_length(text.substr(i, 4));
    if (length == 0) {
      refuse(i, fmt::format("byte 0x{:02X} is not UTF-8", byte));
    }
    i += length;
  }
  return text;
}

Location TreeBuilder::located(Place place) const {
  return {.file = file_, .line = place.line, .column = place.column};
}

void TreeBuilder::error(Place place, std::string message) {
  diagnostics_.error(located(place), std::move(message));
}

void TreeBuilder::stop(Place place, std::string message) {
  std::vector<Diagnostic> all = diagnostics_.list();
  all.push_back({.where = located(place), .message = std::move(message)});
  throw InputError(std::move(all));
}

bool TreeBuilder::wants_key() const {
  return !open_.empty() && nodes_[open_.back().node].kind == Node::Kind::mapping && !open_.back().key;
}

void TreeBuilder::take_key(Place place, Text text) {
  if (text.text == "<<" && !text.quoted) {
    error(place, "merge key '<<' is not supported; write the keys out");
  } else {
    const auto [first, fresh] = open_.back().first_line.emplace(text.text, place.line);
    if (!fresh) {
      error(place, fmt::format("duplicate key '{}' (first on line {})", shown(text.text), first->second));
    }
  }
  open_.back().key = Key{.text = std::move(text.text), .place = place};
}

void TreeBuilder::refuse_key(Place place, std::string_view what) {
  unfit_keys_.error(located(place), fmt::format("a key must be a word, not {}", what));
  open_.back().key = Key{.place = place};
}

std::size_t TreeBuilder::add(RawNode node, AnchorId anchor) {
  nodes_.push_back(std::move(node));
  if (anchor != 0) {
    anchors_[anchor] = nodes_.size() - 1;
  }
  return nodes_.size() - 1;
}

void TreeBuilder::attach(std::size_t node) {
  if (open_.empty()) {
    return;
  }
  RawNode& parent = nodes_[open_.back().node];
  if (parent.kind == Node::Kind::sequence) {
    parent.items.push_back(node);
    return;
  }
  Key key = std::move(*open_.back().key);
  open_.back().key.reset();
  parent.entries.push_back({.key = std::move(key.text), .place = key.place, .value = node});
}

void TreeBuilder::scalar(Place place, Text text, AnchorId anchor) {
  if (++total_ > limits_.nodes) {
    stop(place, fmt::format("more than {} nodes", limits_.nodes));
  }
  if (wants_key()) {
    if (anchor != 0) {
      static_cast<void>(add({.kind = Node::Kind::scalar, .place = place, .text = text}, anchor));
    }
    take_key(place, std::move(text));
    return;
  }
  attach(add({.kind = Node::Kind::scalar, .place = place, .text = std::move(text)}, anchor));
}

void TreeBuilder::null(Place place, AnchorId anchor) {
  if (++total_ > limits_.nodes) {
    stop(place, fmt::format("more than {} nodes", limits_.nodes));
  }
  if (wants_key()) {
    refuse_key(place, "nothing");
    return;
  }
  // An empty value has no place of its own: the parser names whatever comes next.
  const bool valued = !open_.empty() && open_.back().key;
  attach(add({.place = valued ? open_.back().key->place : place}, anchor));
}

void TreeBuilder::alias(Place place, AnchorId anchor) {
  if (wants_key()) {
    refuse_key(place, "an alias");
    return;
  }
  const auto target = anchors_.find(anchor);
  if (target == anchors_.end() || nodes_[target->second].open) {
    stop(place, "the alias stands inside what it names");
  }
  const RawNode& node = nodes_[target->second];
  total_ += node.size;
  if (total_ > limits_.nodes) {
    stop(place, fmt::format("more than {} nodes after alias expansion", limits_.nodes));
  }
  if (static_cast<int>(open_.size()) + node.height > limits_.depth) {
    stop(place, fmt::format("nested deeper than {} levels after alias expansion", limits_.depth));
  }
  attach(target->second);
}

void TreeBuilder::begin(Node::Kind kind, Place place, AnchorId anchor) {
  if (static_cast<int>(open_.size()) >= limits_.depth) {
    stop(place, fmt::format("nested deeper than {} levels", limits_.depth));
  }
  if (++total_ > limits_.nodes) {
    stop(place, fmt::format("more than {} nodes", limits_.nodes));
  }
  const std::size_t node = add({.kind = kind, .place = place, .open = true}, anchor);
  const bool is_key = wants_key();
  if (is_key) {
    refuse_key(place, kind == Node::Kind::mapping ? "a mapping" : "a sequence");
    open_.back().key.reset();  // it comes when the collection ends
  } else {
    attach(node);
  }
  open_.push_back({.node = node, .is_key = is_key});
}

void TreeBuilder::end() {
  RawNode& node = nodes_[open_.back().node];
  const bool is_key = open_.back().is_key;
  open_.pop_back();
  if (is_key) {
    open_.back().key = Key{.place = node.place};
  }
  node.open = false;
  const auto count = [&](std::size_t child) {
    node.size += nodes_[child].size;
    node.height = std::max(node.height, nodes_[child].height + 1);
  };
  for (const std::size_t item : node.items) {
    count(item);
  }
  for (const RawEntry& entry : node.entries) {
    count(entry.value);
    ++node.size;
  }
}

Node TreeBuilder::expand(std::size_t index) const {
  const RawNode& raw = nodes_[index];
  Node node{.kind = raw.kind, .where = located(raw.place), .text = raw.text.text, .quoted = raw.text.quoted};
  node.items.reserve(raw.items.size());
  for (const std::size_t item : raw.items) {
    node.items.push_back(expand(item));
  }
  node.entries.reserve(raw.entries.size());
  for (const RawEntry& entry : raw.entries) {
    node.entries.push_back({.key = entry.key, .where = located(entry.place), .value = expand(entry.value)});
  }
  return node;
}

Node TreeBuilder::finish() {
  for (const Diagnostic& diagnostic : unfit_keys_.list()) {
    diagnostics_.error(diagnostic.where, diagnostic.message);
  }
  diagnostics_.throw_if_any();
  return nodes_.empty() ? Node{.where = located({})} : expand(0);
}

}  // namespace ulysim::config
