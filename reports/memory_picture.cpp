#include "reports/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reports/text.h"
#include "reports/verdict.h"
#include "sim/base/format.h"

namespace ulysim::reports {
namespace {

constexpr std::size_t kWidest = 72;
constexpr std::size_t kFrame = 4;  // the margin, and a mark on either side
constexpr std::int64_t kRows = 4;
constexpr std::int64_t kLevels = 8;

/// How one part of a bar is drawn. Neighbours are told apart without colour.
struct Fill {
  std::string_view block{};
  std::string_view ascii{};
  std::string_view colour{};
};
constexpr std::array<Fill, 10> kFills{{{"█", "#", "\x1b[34m"},
                                       {"▒", "+", "\x1b[36m"},
                                       {"▓", "%", "\x1b[35m"},
                                       {"░", "-", "\x1b[32m"},
                                       {"▚", "*", "\x1b[33m"},
                                       {"▤", "=", "\x1b[31m"},
                                       {"▥", "o", "\x1b[94m"},
                                       {"▨", "x", "\x1b[96m"},
                                       {"▩", "@", "\x1b[95m"},
                                       {"▦", "&", "\x1b[92m"}}};

std::string drawn(const Fill& fill, std::size_t times, const Style& style) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) {
    out += style.unicode ? fill.block : fill.ascii;
  }
  return style.colour && times > 0 ? std::string(fill.colour) + out + std::string(kPlain) : out;
}

std::size_t columns_of(const Style& style) {
  return std::min(style.width, kWidest) - kFrame;
}

struct Part {
  std::string name{};
  Bytes bytes{};
  std::size_t columns{};
};

/// Where `bytes` end on a scale of `columns`: rounded, so that parts side by side never drift from their sum.
std::size_t column_of(Bytes bytes, Bytes scale, std::size_t columns) {
  return static_cast<std::size_t>(std::lround(bytes / scale * static_cast<double>(columns)));
}

/// "|####++     |", or beyond its capacity "|####++++|++". `parts` stand in order; their columns are set.
std::string bar(std::vector<Part>& parts, Bytes capacity, const Style& style) {
  Bytes sum{};
  for (const Part& part : parts) {
    sum += part.bytes;
  }
  const std::size_t columns = columns_of(style);
  const Bytes scale = std::max({capacity, sum, Bytes(1)});
  const std::size_t full = column_of(capacity, scale, columns);
  const std::string_view edge = style.unicode ? "│" : "|";
  std::string out = fmt::format("  {}", edge);
  std::size_t at = 0;
  Bytes end{};
  const auto fill_to = [&](std::size_t to, auto draw) {
    if (at <= full && to > full) {  // the capacity stands within what is too much
      out += draw(full - at);
      out += edge;
      at = full;
    }
    out += draw(to - at);
    at = to;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    end += parts[i].bytes;
    const std::size_t to = column_of(end, scale, columns);
    parts[i].columns = to - at;
    fill_to(to, [&](std::size_t times) { return drawn(kFills.at(i % kFills.size()), times, style); });
  }
  if (at < columns) {
    out += std::string(columns - at, ' ');
    at = columns;
  }
  return out + (sum > capacity ? "" : std::string(edge)) + "\n";
}

/// "  █ activations 12.3 GiB   ▒ logits 4.0 GiB", as many to a line as go; too thin to be seen: "·".
std::string legend(const std::vector<Part>& parts, const Style& style) {
  std::string out;
  std::size_t room = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string mark = parts[i].columns > 0 ? drawn(kFills.at(i % kFills.size()), 1, style)
                             : style.unicode      ? "·"
                                                  : ".";
    const std::string text = fmt::format("{} {}", parts[i].name, human(parts[i].bytes));
    const std::size_t width = display_width(text) + 2;
    if (out.empty() || room < width + 3) {
      out += out.empty() ? "    " : "\n    ";
      room = std::min(style.width, kWidest) - 4;
    } else {
      out += "   ";
      room -= 3;
    }
    out += mark;
    out += ' ';
    out += text;
    room -= std::min(room, width);
  }
  return out + '\n';
}

/// The largest allocation within each of `columns` equal parts of the step; a sample holds until the next.
std::vector<Bytes> largest_in(const results::Figures& f, std::size_t columns) {
  std::vector<Bytes> out(columns);
  const auto step = static_cast<double>(std::max<std::int64_t>(f.step_time.value(), 1));
  const auto column = [&](Instant at) {
    const double share = static_cast<double>(at.value()) / step;
    return std::min(static_cast<std::size_t>(share * static_cast<double>(columns)), columns - 1);
  };
  for (std::size_t i = 0; i < f.memory_curve.size(); ++i) {
    const std::size_t from = column(f.memory_curve[i].at);
    const std::size_t to = i + 1 < f.memory_curve.size() ? column(f.memory_curve[i + 1].at) : columns - 1;
    for (std::size_t c = from; c <= to; ++c) {
      out[c] = std::max(out[c], f.memory_curve[i].allocated);
    }
  }
  return out;
}

/// Eighths of a line in Unicode; in ASCII halves.
std::string_view level(std::int64_t eighths, const Style& style) {
  static constexpr std::array<std::string_view, kLevels + 1> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (style.unicode) {
    return kBlocks.at(static_cast<std::size_t>(eighths));
  }
  return eighths == 0 ? " " : eighths <= kLevels / 2 ? "." : eighths < kLevels ? "o" : "#";
}

/// The top of the curve's picture.
Bytes height_of(const results::Figures& f) {
  return std::max(f.gpu_memory_capacity, f.peak_gpu_allocated);
}

std::string curve(const results::Figures& f, const Style& style) {
  const std::vector<Bytes> heights = largest_in(f, columns_of(style));
  const Bytes top = height_of(f);
  std::string out;
  for (std::int64_t row = kRows - 1; row >= 0; --row) {
    std::string line = fmt::format("  {}", style.unicode ? "│" : "|");
    for (const Bytes bytes : heights) {
      const double eighths = bytes / top * static_cast<double>(kRows * kLevels);
      // What is not empty shows.
      const std::int64_t whole = std::max<std::int64_t>(std::int64_t{std::lround(eighths)}, bytes.value() > 0);
      line += level(std::clamp<std::int64_t>(whole - row * kLevels, 0, kLevels), style);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  const std::string end = human(f.step_time);
  const std::size_t gap = columns_of(style) - std::min(columns_of(style), display_width(end) + 1);
  return out + fmt::format("   0{}{}\n", std::string(gap, ' '), end);
}

}  // namespace

std::string memory_picture(const results::Figures& f, const Style& style) {
  std::vector<Part> parts;
  for (const results::NamedBytes& p : f.memory) {
    if (p.bytes.value() > 0) {
      parts.push_back({.name = in_words(p.name), .bytes = p.bytes});
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  std::string out =
      wrapped(fmt::format("GPU memory at its peak: {} of {}", human(f.peak_gpu_memory), human(f.gpu_memory_capacity)),
              style.width, 2);
  out += bar(parts, f.gpu_memory_capacity, style);
  out += legend(parts, style);
  if (f.memory_curve.size() > 1) {
    out += wrapped(fmt::format("GPU memory over the step, {} high: at most {} allocated, {} reserved, {} of the device",
                               human(height_of(f)), human(f.peak_gpu_allocated), human(f.peak_gpu_reserved),
                               human(f.peak_gpu_memory)),
                   style.width, 2);
    out += curve(f, style);
  }
  if (f.peak_host_memory_per_node.value() > 0) {
    std::vector<Part> host{{.bytes = f.peak_host_memory_per_node}};
    out += wrapped(fmt::format("Host memory: {} of {} a node", human(f.peak_host_memory_per_node),
                               human(f.host_memory_capacity_per_node)),
                   style.width, 2);
    out += bar(host, f.host_memory_capacity_per_node, style);
  }
  if (f.nvme) {
    out += wrapped(fmt::format("NVMe: {} of {} a node", human(f.nvme->peak_per_node), human(f.nvme->capacity_per_node)),
                   style.width, 2);
  }
  if (f.load_peak) {
    out += wrapped(fmt::format("Before the first step, while the checkpoint is loaded: {} of GPU memory, {} of host "
                               "memory a node",
                               human(f.load_peak->gpu), human(f.load_peak->host_per_node)),
                   style.width, 2);
  }
  return out;
}

}  // namespace ulysim::reports
