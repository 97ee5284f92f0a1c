#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ulysim::architecture {

/// One row of the table of modules: who may include whom, and whose third-party headers.
struct Module {
  int floor{};
  std::string_view folder{};
  /// Prefixes of `<...>` headers that this module, and no other, may include, in .cpp and .cu files only.
  std::vector<std::string_view> third_party{};
  /// The complete list of other folders; "sim/*" is every module below sim, "*" every module.
  std::vector<std::string_view> may_include{};
};

[[nodiscard]] std::span<const Module> modules();

/// The module that holds `path` (from the root, as in an #include), or nullptr.
[[nodiscard]] const Module* module_of(std::string_view path);

struct Include {
  int line{};  ///< from 1
  std::string target{};
  bool angled{};
};

/// The #include lines of a source text, in order.
[[nodiscard]] std::vector<Include> includes_of(std::string_view text);

/// What is wrong with the #include lines of the file `path`, each as "file:line: sentence"; empty when all is well.
[[nodiscard]] std::vector<std::string> include_violations(std::string_view path, std::string_view text);

}  // namespace ulysim::architecture
