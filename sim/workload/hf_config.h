#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/config/document.h"
#include "sim/workload/transformer.h"

namespace ulysim::workload {

/// Reads a Hugging Face `config.json`. Multimodal files are read through their `text_config`. Keys that do not
/// matter here are ignored, for such files hold many; keys left out take the default of their model class in
/// huggingface/transformers. Every mistake goes to `diagnostics` with its place; the result is of use only
/// when none was added.
[[nodiscard]] Transformer read_hf_config(const config::Node& root, std::string name, Diagnostics& diagnostics);

/// As above from a file, or from a folder that holds `config.json`; the model is named after the folder.
/// Throws InputError with everything that is wrong.
[[nodiscard]] Transformer load_hf_config(const std::filesystem::path& path);

/// The values of `model_type` that can be read, sorted.
[[nodiscard]] std::vector<std::string> known_model_types();

}  // namespace ulysim::workload
