#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "sim/results/sweep_result.h"

namespace ulysim::tools {

/// Of which sweep a journal is.
struct JournalHead {
  std::string sweep{};     ///< its name, for people
  std::string identity{};  ///< equal for the same grid and program
  std::size_t points{};
};

/// Finished points by number.
using FinishedPoints = std::map<std::size_t, results::SweepPoint>;

/// Adds the points of a journal to `finished`; those that are there already stay. A last line without its end was
/// torn by a kill and is ignored. `sweep` has the axes and plans. InputError when the file is no journal, or one of
/// another sweep.
void read_journal(const std::filesystem::path& path, const JournalHead& head, const results::SweepResult& sweep,
                  FinishedPoints& finished);

/// Appends to a journal, a line a point, each handed to the operating system whole before the next begins: a killed
/// program loses none but the points in work.
class Journal {
 public:
  /// Goes on with the file where there is one: a torn last line is cut off. WorldError when it cannot be written or
  /// another process writes it.
  Journal(std::filesystem::path path, const JournalHead& head);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void add(const results::SweepPoint& point);

 private:
  void write_line(std::string line);
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  int file_{-1};
};

}  // namespace ulysim::tools
