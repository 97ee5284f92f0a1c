#include "sim/config/write_yaml.h"

#include <algorithm>
#include <string_view>

#include "sim/config/write_json.h"

namespace ulysim::config {
namespace {

constexpr std::size_t kWidest = 100;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// Whether plain text stands for itself wherever it is put: none of YAML's signs, and not its word for nothing.
bool is_plain(std::string_view text) {
  static constexpr std::string_view kHarmless = "_-+./ ";
  const bool harmless = std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || kHarmless.find(c) != std::string_view::npos;
  });
  const bool begins_well = !text.empty() && (is_letter_or_digit(text.front()) || text.front() == '_' ||
                                             (text.size() > 1 && is_letter_or_digit(text[1])));
  return harmless && begins_well && text.back() != ' ' && text != "null" && text != "Null" && text != "NULL";
}

/// JSON's double quotes and escapes are YAML's too.
std::string scalar(const std::string& text, bool quoted) {
  return !quoted && is_plain(text) ? text : json_string(text);
}

std::string in_one_line(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return scalar(node.text, node.quoted);
    case Node::Kind::sequence:
      for (const Node& item : node.items) {
        out += (out.empty() ? "" : ", ") + in_one_line(item);
      }
      return '[' + out + ']';
    case Node::Kind::mapping:
      for (const Entry& entry : node.entries) {
        out += (out.empty() ? "" : ", ") + scalar(entry.key, false) + ": " + in_one_line(entry.value);
      }
      return '{' + out + '}';
  }
  return out;
}

void add(const Node& node, std::size_t indent, std::string& out);

/// After "key:" or "-": on the same line where it fits, else below and further in.
void add_value(const Node& node, std::size_t indent, std::string& out) {
  const bool leaf = node.kind == Node::Kind::null || node.kind == Node::Kind::scalar;
  const std::string line = in_one_line(node);
  if (leaf || indent + line.size() <= kWidest) {
    out += ' ' + line + '\n';
    return;
  }
  out += '\n';
  add(node, indent + 2, out);
}

void add(const Node& node, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const Entry& entry : node.entries) {
    out += margin + scalar(entry.key, false) + ':';
    add_value(entry.value, indent, out);
  }
  for (const Node& item : node.items) {
    out += margin + '-';
    add_value(item, indent, out);
  }
}

}  // namespace

std::string write_yaml(const Node& root) {
  if (root.entries.empty() && root.items.empty()) {
    return in_one_line(root) + '\n';
  }
  std::string out;
  add(root, 0, out);
  return out;
}

}  // namespace ulysim::config
