#include "calibration/commands.h"

#include "calibration/fit.h"
#include "calibration/samples.h"
#include "calibration/write_profile.h"
#include "hw_models/spec/load.h"

namespace ulysim::calibration {
namespace {

// The GPU with the most samples, and the one whose generation most newcomers resemble.
constexpr const char* kGenericFrom = "h100-sxm";

}  // namespace

FitOutput run_fit(const std::filesystem::path& catalog_dir, const std::string& gpu_name) {
  if (gpu_name == "generic") {
    const auto from = cost::load_kernel_profile(catalog_dir / "kernels" / (std::string(kGenericFrom) + ".yaml"));
    const cost::KernelProfile profile = generic_profile(from);
    return {.profile_name = profile.name,
            .profile_yaml_text = write_profile(profile),
            .report_text = "taken over from " + from.name + "; nothing fitted\n"};
  }
  spec::Gpu gpu = spec::Catalog(catalog_dir).load_gpu(gpu_name);
  if (gpu.kernel_profile.empty()) {
    gpu.kernel_profile = gpu.name;
  }
  const std::vector<Sample> samples = load_samples(catalog_dir, gpu.kernel_profile);
  return {.profile_name = gpu.kernel_profile,
          .profile_yaml_text = write_profile(fit_profile(samples, gpu)),
          .report_text = to_text(assess_fit(samples, gpu))};
}

}  // namespace ulysim::calibration
