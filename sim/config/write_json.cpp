#include "sim/config/write_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/check.h"

namespace ulysim::config {

Json::Json(double value) : value_(value) {
  ULYSIM_CHECK(std::isfinite(value), "a result is not finite: {}", value);
}

Json Json::object(std::initializer_list<Member> members) {
  Json out;
  out.value_ = Members(members);
  return out;
}

Json Json::array() {
  Json out;
  out.value_ = Items();
  return out;
}

Json& Json::operator[](std::string_view key) {
  auto& members = std::get<Members>(value_);
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.first == key; });
  return found != members.end() ? found->second : members.emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json item) {
  std::get<Items>(value_).push_back(std::move(item));
}

class JsonText {
 public:
  explicit JsonText(JsonLayout layout) : layout_(layout) {}

  void add(const Json& value) {
    std::visit([&](const auto& held) { add(held); }, value.value_);
  }
  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  void add(std::monostate /*null*/) { out_ += "null"; }
  void add(bool value) { out_ += value ? "true" : "false"; }
  void add(std::int64_t value) { out_ += std::to_string(value); }
  void add(double value) { out_ += nlohmann::json(value).dump(); }
  void add(const std::string& text) { out_ += json_string(text); }
  void add(const Json::Items& items) {
    add_all('[', items, ']', [&](const Json& item) { add(item); });
  }
  void add(const Json::Members& members) {
    add_all('{', members, '}', [&](const Json::Member& member) {
      out_ += json_string(member.first);
      out_ += layout_ == JsonLayout::compact ? ":" : ": ";
      add(member.second);
    });
  }

  template <class List, class Add>
  void add_all(char open, const List& list, char close, Add add_one) {
    out_ += open;
    ++depth_;
    for (std::size_t i = 0; i < list.size(); ++i) {
      out_ += i == 0 ? "" : ",";
      new_line();
      add_one(list[i]);
    }
    --depth_;
    if (!list.empty()) {
      new_line();
    }
    out_ += close;
  }
  void new_line() {
    if (layout_ == JsonLayout::indented) {
      out_ += '\n';
      out_.append(2 * depth_, ' ');
    }
  }

  JsonLayout layout_;
  std::size_t depth_{};
  std::string out_;
};

std::string write_json(const Json& value, JsonLayout layout) {
  JsonText text(layout);
  text.add(value);
  return std::move(text).take();
}

std::string json_string(const std::string& text) {
  // Names were checked as UTF-8 when they were read; `replace` keeps a slip there from losing the whole result.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ulysim::config
