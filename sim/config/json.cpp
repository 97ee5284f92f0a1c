#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/config/document.h"
#include "sim/config/tree_builder.h"

namespace ulysim::config {
namespace {

/// Wider than YAML's: saved results hold timelines, and JSON has no aliases to blow it up.
constexpr std::size_t kMostJsonNodes = 1'000'000;

/// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while … last read: '…'":
/// the place is told by us, and what was read last may be the whole file.
std::string sentence(std::string_view what) {
  constexpr std::size_t kLongest = 160;
  constexpr std::string_view kLastRead = "; last read: '";
  const std::size_t syntax = what.find("syntax error");
  std::string text = syntax == std::string_view::npos ? fmt::format("syntax error: {}", what.substr(what.find(' ') + 1))
                                                      : std::string(what.substr(syntax));
  if (const std::size_t begin = text.find(kLastRead); begin != std::string::npos) {
    const std::size_t expected = text.rfind("; expected ");
    text.erase(begin, expected == std::string::npos || expected < begin ? std::string::npos : expected - begin);
  }
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "…";
}

/// nlohmann's events carry no position, so this walks the text beside them: between two events stand only blanks,
/// ',' and ':', and the token of an event is already known to be well formed when the event comes.
class Handler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(std::string_view text, TreeBuilder& builder) : text_(text), builder_(&builder), places_(text) {}

  bool null() override {
    const auto token = next_word();
    builder_->null(token.place, 0);
    return true;
  }
  bool boolean(bool /*value*/) override { return word(); }
  bool number_integer(number_integer_t /*value*/) override { return word(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return word(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return word(); }
  bool string(string_t& value) override { return text(value); }
  bool key(string_t& value) override { return text(value); }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return begin(Node::Kind::mapping); }
  bool start_array(std::size_t /*elements*/) override { return begin(Node::Kind::sequence); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& e) override {
    const std::size_t offset = position == 0 ? 0 : std::min(position - 1, text_.size());
    builder_->stop(PlaceCounter(text_).at(offset), sentence(e.what()));
  }

 private:
  struct Token {
    Place place{};
    std::string_view text{};
  };

  Place seek() {
    while (cursor_ < text_.size() && std::string_view(" \t\r\n,:").find(text_[cursor_]) != std::string_view::npos) {
      ++cursor_;
    }
    return places_.at(cursor_);
  }
  Token next_word() {
    const Place place = seek();
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,:]}", cursor_), text_.size());
    const std::string_view word = text_.substr(cursor_, end - cursor_);
    cursor_ = end;
    return {.place = place, .text = word};
  }
  bool word() {
    const Token token = next_word();
    builder_->scalar(token.place, {.text = std::string(token.text)}, 0);
    return true;
  }
  bool text(string_t& value) {
    const Place place = seek();
    for (++cursor_; cursor_ < text_.size() && text_[cursor_] != '"'; ++cursor_) {
      cursor_ += text_[cursor_] == '\\' ? 1U : 0U;
    }
    ++cursor_;
    builder_->scalar(place, {.text = std::move(value), .quoted = true}, 0);
    return true;
  }
  bool begin(Node::Kind kind) {
    const Place place = seek();
    ++cursor_;
    builder_->begin(kind, place, 0);
    return true;
  }
  bool end() {
    static_cast<void>(seek());
    ++cursor_;
    builder_->end();
    return true;
  }

  std::string_view text_;
  TreeBuilder* builder_;
  PlaceCounter places_;
  std::size_t cursor_{};
};

}  // namespace

Node parse_json(std::string_view text, const std::string& file) {
  const std::string_view checked = checked_text(text, file);
  TreeBuilder builder(file, {.nodes = kMostJsonNodes});
  Handler handler(checked, builder);
  static_cast<void>(nlohmann::json::sax_parse(checked.begin(), checked.end(), &handler));
  return builder.finish();
}

}  // namespace ulysim::config
