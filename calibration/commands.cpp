#include "calibration/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibration/fit_cluster.h"
#include "calibration/write_profile.h"
#include "hw_models/spec/load.h"
#include "sim/base/diagnostics.h"

namespace ulysim::calibration {
namespace {

// The GPU with the most samples, and the one whose generation most newcomers resemble.
constexpr const char* kGenericFrom = "h100-sxm";

WrittenFile profile_file(const cost::KernelProfile& profile) {
  return {.path = fmt::format("kernels/{}.yaml", profile.name), .text = write_profile(profile)};
}

FitOutput refit_gpu(const std::filesystem::path& catalog_dir, const std::string& name,
                    std::span<const Sample> samples) {
  const spec::Gpu gpu = spec::Catalog(catalog_dir).load_gpu(name);
  const cost::KernelProfile base = cost::find_kernel_profile(catalog_dir, gpu);
  const bool kernels = std::any_of(samples.begin(), samples.end(),
                                   [](const Sample& sample) { return !kernels_of(sample.probe).empty(); });
  FitOutput output{.report = assess_own(samples, gpu, base)};
  if (kernels) {
    output.files.push_back(profile_file(refit_profile(samples, gpu, base).profile));
  }
  return output;
}

FitOutput fit_machine(const std::string& name, std::span<const Sample> samples) {
  const ClusterFit fit = fit_cluster(samples, name);
  FitOutput output{.files = {{.path = fmt::format("gpus/{}.yaml", name), .text = write_gpu(fit.gpu)},
                             {.path = fmt::format("nodes/{}.yaml", name), .text = write_node(fit.node)}},
                   .report = assess_cluster(samples, fit),
                   .summary = to_text(compare_layers(samples, fit))};
  if (const std::string rows = write_measured_layers(samples, fit); !rows.empty()) {
    output.files.push_back({.path = fmt::format("validate/{}.yaml", name), .text = rows});
    output.files.push_back({.path = fmt::format("validate/{}", kMeasuredModelFile), .text = measured_model(samples)});
  }
  output.files.push_back(profile_file(fit.profile));
  return output;
}

}  // namespace

FitOutput run_fit(const std::filesystem::path& catalog_dir, const std::string& gpu_name) {
  if (gpu_name == "generic") {
    const auto from = cost::load_kernel_profile(catalog_dir / "kernels" / (std::string(kGenericFrom) + ".yaml"));
    return {.files = {profile_file(generic_profile(from))},
            .summary = fmt::format("taken over from {}; nothing fitted\n", from.name)};
  }
  spec::Gpu gpu = spec::Catalog(catalog_dir).load_gpu(gpu_name);
  if (gpu.kernel_profile.empty()) {
    gpu.kernel_profile = gpu.name;
  }
  const std::vector<Sample> samples = catalog_samples(catalog_dir, gpu.kernel_profile);
  return {.files = {profile_file(fit_profile(samples, gpu).profile)}, .report = assess_gpu(samples, gpu)};
}

FitOutput run_fit(const std::filesystem::path& catalog_dir, const std::string& name, std::span<const Sample> samples) {
  const std::vector<std::string> known = spec::Catalog(catalog_dir).gpu_names();
  const bool in_catalogue = std::find(known.begin(), known.end(), name) != known.end();
  return in_catalogue ? refit_gpu(catalog_dir, name, samples) : fit_machine(name, samples);
}

}  // namespace ulysim::calibration
