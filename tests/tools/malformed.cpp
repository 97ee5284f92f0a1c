#include "tests/tools/malformed.h"

#include <array>
#include <random>

namespace ulysim::tools {
namespace {

// Flow style throughout: a cut anywhere before the last bracket leaves something open or missing.
const std::string kGood =
    "model: llama-3.1-8b\n"
    "cluster: {node: dgx-h100, nodes: 2}\n"
    "training: {sequence_length: 1Mi, micro_batch: 1, zero: 3, recompute: full}\n"
    "plans: [{ulysses: 8}, {ring: 8, ring_layout: zigzag}]\n";

class Breaker {
 public:
  explicit Breaker(std::uint64_t seed) : random_(seed) {}

  Malformed next(std::size_t number) {
    switch (number % 6) {
      case 0:
        return truncated();
      case 1:
        return wrong_type();
      case 2:
        return unknown_key();
      case 3:
        return absurd_number();
      case 4:
        return deep_nesting();
      default:
        return forbidden_syntax();
    }
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  template <class T, std::size_t N>
  const T& one_of(const std::array<T, N>& list) {
    return list[below(N)];
  }

  static std::string with(const std::string& old, const std::string& fresh) {
    std::string text = kGood;
    return text.replace(text.find(old), old.size(), fresh);
  }

  Malformed truncated() { return {"truncated", kGood.substr(0, below(kGood.size() - 2))}; }

  Malformed wrong_type() {
    static const std::array<std::string, 7> kValues{"{a: 1}", "[1, 2]", "true", "many", "\"3\"", "3 s", "1.5"};
    static const std::array<std::string, 5> kKeys{"nodes: 2", "sequence_length: 1Mi", "micro_batch: 1", "zero: 3",
                                                  "ulysses: 8"};
    const std::string& key = one_of(kKeys);
    return {"wrong type", with(key, key.substr(0, key.find(':')) + ": " + one_of(kValues))};
  }

  Malformed unknown_key() {
    static const std::array<std::string, 5> kBefore{"nodes: 2", "zero: 3", "ulysses: 8", "ring: 8", "micro_batch: 1"};
    const std::string& before = one_of(kBefore);
    return {"unknown key", with(before, "key" + std::to_string(random_()) + ": 1, " + before)};
  }

  Malformed absurd_number() {
    static const std::array<std::string, 10> kNumbers{
        "-1", "1e999",   "9223372036854775808", "1000000000000000000000", ".inf", "nan", "0x10", "1__0",
        "1T", "99999999"};
    static const std::array<std::string, 4> kKeys{"nodes: 2", "sequence_length: 1Mi", "ulysses: 8", "zero: 3"};
    const std::string& key = one_of(kKeys);
    // 99,999,999 tokens are a legal length.
    const std::string number = key.starts_with("sequence") ? kNumbers[below(9)] : one_of(kNumbers);
    return {"absurd number", with(key, key.substr(0, key.find(':')) + ": " + number)};
  }

  Malformed deep_nesting() {
    const std::size_t depth = 65 + below(20'000);
    std::string nest;
    for (std::size_t i = 0; i < depth; ++i) {
      nest += below(2) == 0 ? "[" : "{a: ";
    }
    return {"deep nesting", with("1Mi", nest)};
  }

  Malformed forbidden_syntax() {
    static const std::array<std::string, 8> kTails{
        "plans: []\n",              // a key twice
        "--- {}\n",                 // a second document
        "x: !!python/object {}\n",  // a tag
        "<<: {zero: 1}\n",          // a merge
        "x: \xff\xfe\n",            // no UTF-8
        std::string("x: \x01\n"),   // a control character
        "\tx: 1\n",                 // a tab as indentation
        "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
        "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
        "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n"};
    return {"forbidden syntax", kGood + one_of(kTails)};
  }

  std::mt19937_64 random_;
};

}  // namespace

std::vector<Malformed> malformed_scenarios(std::uint64_t seed, std::size_t count) {
  Breaker breaker(seed);
  std::vector<Malformed> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(breaker.next(i));
  }
  return all;
}

}  // namespace ulysim::tools
