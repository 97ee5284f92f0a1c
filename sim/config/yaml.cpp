#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "sim/config/document.h"
#include "sim/config/tree_builder.h"

namespace ulysim::config {
namespace {

constexpr std::size_t kMostYamlNodes = 100'000;

/// yaml-cpp queues tokens without end while it looks for the ':' of a possible key, long before any event: a file
/// of 64 MiB of '[' would take gigabytes. A document within the node limit needs far fewer marks than this.
constexpr std::size_t kMostYamlMarks = 2'000'000;

Place place_of(const YAML::Mark& mark) {
  return mark.is_null() ? Place{} : Place{.line = mark.line + 1, .column = mark.column + 1};
}

/// Events rather than yaml-cpp's node tree: marks are exact, scalars stay text, and depth, tags and aliases are
/// seen before the parser goes down another level. (The reader in 0.7 recurses once per event of nesting.)
class Handler final : public YAML::EventHandler {
 public:
  Handler(std::string_view text, TreeBuilder& builder) : text_(text), builder_(&builder) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) {
      builder_->stop(place_of(mark), "a second document; a file holds one");
    }
    started_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { builder_->null(place_of(mark), anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { builder_->alias(place_of(mark), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    builder_->scalar(place_of(mark), {.text = value, .quoted = tag == "!"}, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    builder_->begin(Node::Kind::sequence, place_of(mark), anchor);
  }
  void OnSequenceEnd() override { builder_->end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    builder_->begin(Node::Kind::mapping, place_of(mark), anchor);
  }
  void OnMapEnd() override { builder_->end(); }

 private:
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    const bool plain = tag.empty() || tag == "?";
    // "!" is what the parser calls a quoted scalar, and also the tag '!' written out.
    const bool quoted = tag == "!" && !tag_written_at(mark);
    if (!plain && !quoted) {
      builder_->error(place_of(mark), "tags ('!') are not supported");
    }
  }

  /// The mark is that of the first of anchor, tag and value.
  [[nodiscard]] bool tag_written_at(const YAML::Mark& mark) const {
    auto at = static_cast<std::size_t>(mark.pos);
    if (at < text_.size() && text_[at] == '&') {
      at = text_.find_first_of(" \t\r\n", at);
      at = at == std::string_view::npos ? at : text_.find_first_not_of(" \t\r\n", at);
    }
    return at < text_.size() && text_[at] == '!';
  }

  std::string_view text_;
  TreeBuilder* builder_;
  bool started_{};
};

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file) {
  const std::string_view checked = checked_text(text, file);
  TreeBuilder builder(file, {.nodes = kMostYamlNodes});
  std::size_t marks = 0;
  for (std::size_t i = 0; i < checked.size(); ++i) {
    marks += std::string_view("[]{},:?&*!\"'").find(checked[i]) != std::string_view::npos ? 1U : 0U;
    if (marks > kMostYamlMarks) {
      builder.stop(PlaceCounter(checked).at(i), fmt::format("more than {} nodes", kMostYamlNodes));
    }
  }
  Handler handler(checked, builder);
  try {
    std::istringstream stream{std::string(checked)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& e) {
    builder.stop(place_of(e.mark), fmt::format("syntax error: {}", e.msg));
  }
  return builder.finish();
}

}  // namespace ulysim::config
