#include "calibration/import/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "calibration/import/text.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

constexpr std::size_t kMostElements = 100'000;
constexpr std::size_t kMostDepth = 64;
constexpr std::size_t kMostAttributes = 64;
constexpr std::string_view kBlanks = " \t\r\n";

struct Entity {
  std::string_view text{};
  char character{};
};
constexpr std::array<Entity, 5> kEntities{
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};

std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto found = std::find_if(kEntities.begin(), kEntities.end(),
                                    [&](const Entity& entity) { return text.starts_with(entity.text); });
    out += found == kEntities.end() ? text.front() : found->character;
    text.remove_prefix(found == kEntities.end() ? 1 : found->text.size());
  }
  return out;
}

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& file) : text_(text), file_(&file) {}

  XmlElement read() {
    while (seek_tag()) {
      tag();
    }
    if (!open_.empty()) {
      stop(fmt::format("the file ends within <{}>, which begins at line {}", shown(open_.back().name),
                       open_.back().line));
    }
    if (!root_) {
      stop("no element in it");
    }
    return std::move(*root_);
  }

 private:
  [[noreturn]] void stop(std::string message) const {
    throw InputError({{.where = {.file = *file_, .line = line_, .column = 1}, .message = std::move(message)}});
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void advance(std::size_t characters) {
    const std::string_view passed = text_.substr(at_, characters);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
  }
  void skip_blanks() { advance(std::min(text_.find_first_not_of(kBlanks, at_), text_.size()) - at_); }
  void jump_behind(std::string_view end, std::string_view what) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) {
      stop(fmt::format("the file ends within {}", what));
    }
    advance(found + end.size() - at_);
  }

  /// To the next '<' of an element; false at the end.
  bool seek_tag() {
    for (;;) {
      const std::size_t next = text_.find('<', at_);
      if (next == std::string_view::npos) {
        return false;
      }
      advance(next - at_);
      if (starts("<!--")) {
        jump_behind("-->", "a comment");
      } else if (starts("<?")) {
        jump_behind("?>", "a declaration");
      } else if (starts("<!")) {
        stop("doctypes and CDATA are not read");
      } else {
        return true;
      }
    }
  }

  std::string name() {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n=/><\"'", at_), text_.size());
    std::string word(text_.substr(at_, end - at_));
    if (word.empty()) {
      stop("a name is missing");
    }
    advance(word.size());
    return word;
  }

  void tag() {
    advance(1);
    if (peek() == '/') {
      advance(1);
      close(name());
      return;
    }
    if (root_ && open_.empty()) {
      stop("a second root element");
    }
    if (++elements_ > kMostElements || open_.size() >= kMostDepth) {
      stop("too many or too deep elements");
    }
    XmlElement element{.line = line_};
    element.name = name();
    for (;;) {
      skip_blanks();
      if (starts("/>")) {
        advance(2);
        finish(std::move(element));
        return;
      }
      if (peek() == '>') {
        advance(1);
        open_.push_back(std::move(element));
        return;
      }
      attribute(element);
    }
  }

  void attribute(XmlElement& element) {
    XmlAttribute attribute{.name = name()};
    skip_blanks();
    if (peek() != '=') {
      stop(fmt::format("attribute '{}' has no value", shown(attribute.name)));
    }
    advance(1);
    skip_blanks();
    const char quote = peek();
    const std::size_t end = quote == '"' || quote == '\'' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      stop(fmt::format("the value of '{}' has no quotes around it", shown(attribute.name)));
    }
    if (!element.attribute(attribute.name).empty()) {
      stop(fmt::format("attribute '{}' stands twice", shown(attribute.name)));
    }
    if (element.attributes.size() >= kMostAttributes) {
      stop("too many attributes");
    }
    attribute.value = unescaped(text_.substr(at_ + 1, end - at_ - 1));
    advance(end + 1 - at_);
    element.attributes.push_back(std::move(attribute));
  }

  void close(const std::string& closed) {
    skip_blanks();
    if (open_.empty() || open_.back().name != closed || peek() != '>') {
      stop(fmt::format("</{}> closes nothing", shown(closed)));
    }
    advance(1);
    XmlElement element = std::move(open_.back());
    open_.pop_back();
    finish(std::move(element));
  }

  void finish(XmlElement element) {
    if (open_.empty()) {
      root_ = std::move(element);
    } else {
      open_.back().children.push_back(std::move(element));
    }
  }

  std::string_view text_;
  const std::string* file_;
  std::size_t at_{};
  int line_{1};
  std::size_t elements_{};
  std::vector<XmlElement> open_;
  std::optional<XmlElement> root_;
};

}  // namespace

std::string_view XmlElement::attribute(std::string_view key) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(), [&](const XmlAttribute& one) { return one.name == key; });
  return found == attributes.end() ? std::string_view() : std::string_view(found->value);
}

XmlElement parse_xml(std::string_view text, const std::string& file) {
  return XmlReader(text, file).read();
}

}  // namespace ulysim::calibration
