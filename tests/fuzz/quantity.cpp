// Question: is every text either a quantity whose exact form reads back to it, or refused with a sentence?

#include "sim/base/check.h"
#include "sim/base/format.h"
#include "sim/base/parse_quantity.h"

namespace {

using namespace ulysim;

template <class T>
void check_sentence(const Parsed<T>& parsed) {
  if (const auto* sentence = std::get_if<std::string>(&parsed)) {
    ULYSIM_CHECK(sentence->starts_with("cannot read '"), "a refusal says what it cannot read: {}", *sentence);
  }
}

template <class T>
void check_quantity(Parsed<T> (*parse)(std::string_view), std::string_view text) {
  const Parsed<T> parsed = parse(text);
  check_sentence(parsed);
  if (const T* value = std::get_if<T>(&parsed)) {
    const Parsed<T> back = parse(exact(*value));
    ULYSIM_CHECK(back.index() == 0 && std::get<0>(back) == *value, "'{}' comes back changed", exact(*value));
    ULYSIM_CHECK(value->value() >= 0, "'{}' reads as negative", text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_quantity<Bytes>(parse_bytes, text);
  check_quantity<Bandwidth>(parse_bandwidth, text);
  check_quantity<FlopRate>(parse_flop_rate, text);
  check_quantity<Duration>(parse_duration, text);
  check_sentence(parse_count(text));
  check_sentence(parse_number(text));
  return 0;
}
