// The text of nccl-tests (NVIDIA/nccl-tests src/common.cu and, from 2.19, src/util.cu). The generations differ in what
// stands between the type and the first time, so rows are read from the right.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "calibration/import/nccl_tests.h"

namespace ulysim::calibration {
namespace {

constexpr std::array<std::string_view, 7> kRedops{"sum", "prod", "max", "min", "avg", "mulsum", "none"};
// Below a nanosecond nothing was measured.
constexpr double kLeastMicroseconds = 1e-3;

/// "[1,0]<stdout>:" of mpirun --tag-output, wherever it landed.
std::string without_tags(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const std::size_t end = line.find("]<std");
    const std::size_t begin = end == std::string_view::npos ? end : line.rfind('[', end);
    const std::size_t colon = end == std::string_view::npos ? end : line.find(">:", end);
    if (begin == std::string_view::npos || colon == std::string_view::npos) {
      break;
    }
    out += line.substr(0, begin);
    out += ' ';
    line.remove_prefix(colon + 2);
  }
  return out.append(line);
}

bool is_rank_prefix(std::string_view word) {
  if (word.size() >= 2 && word.ends_with(':')) {
    return whole_number(word.substr(0, word.size() - 1)).has_value();
  }
  return word.size() >= 3 && word.front() == '[' && word.back() == ']' &&
         whole_number(word.substr(1, word.size() - 2)).has_value();
}

/// "2026-07-09T10:11:12Z", which containers' logs put before a line.
bool is_timestamp(std::string_view word) {
  return word.size() >= 19 && word[4] == '-' && word[7] == '-' && word[10] == 'T';
}

/// Drops "host-a:", "0:", "[0]" and times before the content, whatever launcher put them there.
void drop_prefix(std::vector<std::string_view>& words) {
  std::size_t prefixes = 0;
  while (prefixes + 1 < words.size() &&
         (words[prefixes].ends_with(':') || is_rank_prefix(words[prefixes]) || is_timestamp(words[prefixes]))) {
    ++prefixes;
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(prefixes));
}

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What the header says of the halves.
struct Layout {
  std::size_t half{4};  ///< columns
};

std::optional<Half> read_half(const std::vector<std::string_view>& words, std::size_t begin, const Layout& layout) {
  const auto time = printed_number(words[begin]);
  const auto algbw = printed_number(words[begin + 1]);
  const auto busbw = printed_number(words[begin + 2]);
  if (!time || !algbw || !busbw) {
    return std::nullopt;
  }
  Half half{.time_us = *time, .algbw = *algbw, .busbw = *busbw};
  if (words[begin + 3] != "N/A") {
    const auto wrong = printed_number(words[begin + 3]);
    if (!wrong) {
      return std::nullopt;
    }
    half.wrong = wrong->value;
  }
  if (layout.half == 8) {
    const auto cv = printed_number(words[begin + 7]);
    half.cv_pct = cv ? std::optional(cv->value) : std::nullopt;
  }
  return half;
}

bool is_date(std::string_view word) {
  return word.size() == 10 && word[4] == '-' && word[7] == '-';
}

/// Nothing when the row is not whole.
std::optional<NcclRow> read_row(std::vector<std::string_view> words, const Layout& layout, int line) {
  std::erase_if(words, is_rank_prefix);
  if (words.size() >= 2 && is_date(words[words.size() - 2])) {
    words.resize(words.size() - 2);  // -S
  }
  if (words.size() < 3) {
    return std::nullopt;
  }
  const auto size = whole_number(words[0]);
  const auto count = whole_number(words[1]);
  const auto bytes = element_bytes(words[2]);
  if (!size || !count || !bytes) {
    return std::nullopt;
  }
  NcclRow row{.line = line, .size = *size, .count = *count, .element_bytes = *bytes};
  std::size_t next = 3;
  if (next < words.size() && std::find(kRedops.begin(), kRedops.end(), words[next]) != kRedops.end()) {
    row.redop = words[next++];
  }
  const std::size_t halves = 2 * layout.half;
  if (words.size() == next + halves + 1) {
    row.root = words[next] == "-1" ? std::optional<std::int64_t>(-1) : whole_number(words[next]);
    if (!row.root) {
      return std::nullopt;
    }
    ++next;
  }
  if (words.size() != next + halves) {
    return std::nullopt;
  }
  row.out_of_place = read_half(words, next, layout);
  row.in_place = read_half(words, next + layout.half, layout);
  if (!row.out_of_place || !row.in_place) {
    return std::nullopt;
  }
  return row;
}

/// Walks down a log: which run a line belongs to, and what it adds to it.
class LogReader {
 public:
  LogReader(const std::string& file, ImportedFile& out, Diagnostics& diagnostics)
      : file_(&file), out_(&out), diagnostics_(&diagnostics) {}

  void read(const Line& line) {
    const std::string text = without_tags(line.text);
    std::vector<std::string_view> words = words_of(text);
    drop_prefix(words);
    if (words.empty()) {
      return;
    }
    incomplete_at_.reset();
    if (words.front().starts_with('#')) {
      comment(words, text, line.number);
    } else if (whole_number(words.front())) {
      row(words, line.number);
    } else {
      name_program(words, line.number);
    }
  }

  [[nodiscard]] std::vector<NcclTable> finish() {
    if (incomplete_at_) {
      out_->truncated = true;
      out_->incomplete_rows -= counted_incomplete_ ? 1 : 0;
    }
    if (out_->incomplete_rows > 0) {
      out_->notes.push_back(fmt::format("{} incomplete rows between others, skipped (about line {})",
                                        out_->incomplete_rows, last_incomplete_));
    }
    flush();
    return std::move(tables_);
  }

 private:
  void comment(const std::vector<std::string_view>& words, std::string_view text, int line) {
    if (contains(words, "Using") && contains(words, "devices")) {
      // A second list before any row belongs to runs that print over each other: their ranks repeat.
      if (!table_.rows.empty()) {
        flush();
      }
      return;
    }
    if (const auto rank = std::find(words.begin(), words.end(), "Rank"); rank != words.end()) {
      device(words, rank, text, line);
    } else if (contains(words, "size") && contains(words, "count") && contains(words, "type")) {
      header(words, line);
    } else {
      name_program(words, line);
    }
  }

  void header(const std::vector<std::string_view>& words, int line) {
    if (!table_.rows.empty()) {
      // The same devices go on with another table.
      NcclTable next{.line = line, .program = table_.program, .rank_groups = table_.rank_groups, .gpu = table_.gpu};
      const std::set<std::int64_t> ranks = earlier_ranks_;
      flush();
      table_ = std::move(next);
      earlier_ranks_ = ranks;
    }
    layout_.half = contains(words, "i_min") ? 8 : 4;
    table_.check = contains(words, "error") ? Check::relative_error : Check::wrong_elements;
    if (contains(words, "cputime")) {
      diagnostics_->error(at(line), "the times are of the CPU's call (-C 1), not of the collective");
    }
  }

  void device(const std::vector<std::string_view>& words, std::vector<std::string_view>::const_iterator rank,
              std::string_view text, int line) {
    const auto number = rank + 1 == words.end() ? std::nullopt : whole_number(*(rank + 1));
    if (!number) {
      return;
    }
    if (!earlier_ranks_.insert(*number).second) {
      diagnostics_->error(at(line),
                          fmt::format("rank {} stands here a second time: these are several runs over each other, "
                                      "mostly of nccl-tests built without MPI=1; build with it and measure again",
                                      *number));
    }
    const auto group = std::find(rank, words.end(), "Group");
    const auto index = group == words.end() || group + 1 == words.end() ? std::nullopt : whole_number(*(group + 1));
    table_.rank_groups.push_back(index.value_or(0));
    if (const std::size_t bracket = text.rfind(']'); bracket != std::string_view::npos) {
      std::string_view gpu = trimmed(text.substr(bracket + 1));
      if (gpu.starts_with("NVIDIA ")) {
        gpu.remove_prefix(7);
      }
      table_.gpu = shown(gpu);
    }
  }

  /// "# Collective test starting: alltoall_perf", or a shell's echo of "./build/alltoall_perf -b 8".
  void name_program(const std::vector<std::string_view>& words, int line) {
    for (std::string_view word : words) {
      word = word.substr(word.rfind('/') == std::string_view::npos ? 0 : word.rfind('/') + 1);
      if (!word.ends_with("_perf") || find_collective(word) == nullptr) {
        continue;
      }
      if (!table_.rows.empty() && !contains(words, "concluded:")) {
        flush();
      }
      if (table_.rows.empty() || table_.program.empty()) {
        table_.program = word;
        table_.line = line;
      }
      return;
    }
  }

  void row(const std::vector<std::string_view>& words, int line) {
    auto row = read_row(words, layout_, line);
    if (row && row->size == 0) {
      ++out_->zero_size_rows;
      return;
    }
    if (row && row->out_of_place->time_us.value >= kLeastMicroseconds &&
        row->in_place->time_us.value >= kLeastMicroseconds) {
      table_.line = table_.rows.empty() ? line : table_.line;
      table_.rows.push_back(std::move(*row));
      return;
    }
    incomplete_at_ = line;
    counted_incomplete_ = words.size() >= 3 && element_bytes(words[2]);
    if (counted_incomplete_) {
      ++out_->incomplete_rows;
      last_incomplete_ = line;
    }
  }

  void flush() {
    if (!table_.rows.empty()) {
      tables_.push_back(std::move(table_));
    }
    table_ = NcclTable{};
    earlier_ranks_.clear();
  }

  [[nodiscard]] Location at(int line) const { return {.file = *file_, .line = line, .column = 1}; }

  const std::string* file_;
  ImportedFile* out_;
  Diagnostics* diagnostics_;
  Layout layout_{};
  NcclTable table_{};
  std::set<std::int64_t> earlier_ranks_;
  std::vector<NcclTable> tables_;
  std::optional<int> incomplete_at_;
  bool counted_incomplete_{};
  int last_incomplete_{};
};

}  // namespace

ImportedFile import_nccl_text(std::string_view text, const std::string& file, const ImportHints& hints) {
  ImportedFile out{.format = "nccl-tests text"};
  Diagnostics diagnostics;
  LogReader reader(file, out, diagnostics);
  for (const Line& line : lines_of(text)) {
    reader.read(line);
  }
  const std::vector<NcclTable> tables = reader.finish();
  diagnostics.throw_if_any();
  for (const NcclTable& table : tables) {
    add_samples(table, hints, file, out, diagnostics);
  }
  if (tables.empty()) {
    diagnostics.error(
        {.file = file, .line = 1, .column = 1},
        "no complete row of nccl-tests in it, and no other format that is known (an nccl-tests log or "
        "its -J file, a PyTorch trace, a table with named columns, nvidia-smi topo -m, an NCCL topology)");
  }
  diagnostics.throw_if_any();
  return out;
}

}  // namespace ulysim::calibration
