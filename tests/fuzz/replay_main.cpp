// A plain main for fuzz targets: replays a corpus folder, then mutants of it. Everything is seeded, so a failure
// comes again with the same arguments: PROGRAM CORPUS [MUTANTS [SEED]].

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kMostBytes = 4096;
constexpr int kDefaultMutants = 4000;
constexpr std::uint64_t kDefaultSeed = 20240607;

/// In order of name, so that a seed means the same everywhere.
std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, std::uint64_t seed) : corpus_(&corpus), random_(seed) {}

  std::string next() {
    std::string text = any();
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      edit(text);
    }
    text.resize(std::min(text.size(), kMostBytes));
    return text;
  }

 private:
  // std::uniform_int_distribution differs between libraries; the slight bias of % does no harm here.
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound); }
  const std::string& any() { return corpus_->at(below(corpus_->size())); }

  void edit(std::string& text) {
    static const std::string kTelling = "[]{}:,-?&*!|>'\"%@#\\\n\t ~<=.eE+_0123456789kMGTPi\xFF\xC3\xE2\x04";
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(text.size() - at + 1, 32));
    switch (below(6)) {
      case 0:
        text.insert(at, 1, kTelling.at(below(kTelling.size())));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, 1 + below(128), kTelling.at(below(kTelling.size())));
        break;
      case 4: {
        const std::string& other = any();
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      default:
        if (at < text.size()) {
          text[at] = static_cast<char>(random_() & 0xFFU);
        }
    }
  }

  const std::vector<std::string>* corpus_;
  std::mt19937_64 random_;
};

/// False, with the input told, when the target throws; a crash ends the program by itself.
bool holds(const std::string& text, const std::string& name) {
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    return true;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\ninput in hex: ", name, e.what());
    for (const char c : text) {
      fmt::print(stderr, "{:02x}", static_cast<unsigned char>(c));
    }
    fmt::print(stderr, "\n");
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    fmt::print(stderr, "usage: {} CORPUS [MUTANTS [SEED]]\n", argv[0]);
    return 2;
  }
  const int mutants = arguments.size() > 1 ? std::stoi(arguments[1]) : kDefaultMutants;
  const std::uint64_t seed = arguments.size() > 2 ? std::stoull(arguments[2]) : kDefaultSeed;
  std::vector<std::string> corpus = read_corpus(arguments[0]);
  if (corpus.empty()) {
    fmt::print(stderr, "no corpus in {}\n", arguments[0]);
    return 1;
  }
  bool good = true;
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    good = holds(corpus[i], fmt::format("corpus file {}", i)) && good;
  }
  Mutator mutator(corpus, seed);
  for (int i = 0; i < mutants && good; ++i) {
    good = holds(mutator.next(), fmt::format("mutant {} of seed {}", i, seed));
  }
  fmt::print("{} files, {} mutants, seed {}\n", corpus.size(), mutants, seed);
  return good ? 0 : 1;
}
