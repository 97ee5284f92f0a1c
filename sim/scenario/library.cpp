#include "sim/scenario/library.h"

#include "sim/base/check.h"
#include "sim/scenario/resources.h"

namespace ulysim::scenario {
namespace {

/// What `known` holds under `key`, else what `load` gives, kept unless it throws.
template <class Known, class Load>
const typename Known::mapped_type& known_or(Known& known, const typename Known::key_type& key, const Load& load) {
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, load()).first->second;
}

}  // namespace

const spec::Node& Library::node(const std::string& name, const Location& asked_at) {
  return known_or(nodes_, name, [&] { return catalog_.load_node(name, asked_at); });
}

const spec::Gpu& Library::gpu(const std::string& name, const Location& asked_at) {
  return known_or(gpus_, name, [&] { return catalog_.load_gpu(name, asked_at); });
}

const spec::Framework& Library::framework(const std::string& name, const Location& asked_at) {
  return known_or(frameworks_, name, [&] { return catalog_.load_framework(name, asked_at); });
}

const cost::KernelProfile& Library::kernels(const spec::Gpu& gpu) {
  return known_or(kernels_, gpu.name, [&] { return cost::find_kernel_profile(catalog_.folder(), gpu); });
}

const workload::Transformer& Library::model(const std::string& name, const Location& asked_at,
                                            const std::filesystem::path& folder) {
  return known_or(transformers_, {folder.string(), name}, [&] {
    Diagnostics diagnostics;
    auto model = find_model(name, asked_at, {.models = models_, .folder = folder}, diagnostics);
    diagnostics.throw_if_any();
    ULYSIM_CHECK(model.has_value(), "model '{}' is neither there nor told to be wrong", name);
    return *std::move(model);
  });
}

}  // namespace ulysim::scenario
