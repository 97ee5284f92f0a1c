// The `fit` result: parameters, how sure they are, errors by group, every sample against the fit.

#include <fmt/format.h>

#include "calibration/fit_report.h"
#include "calibration/json_text.h"

namespace ulysim::calibration {
namespace {

std::string full_name(const Parameter& p) {
  return fmt::format("{} {}", p.part, p.name);
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const double value : values) {
    texts.push_back(json_number(value));
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string parameter_json(const Parameter& p) {
  return json_object({{"name", json_string(full_name(p))},
                      {"value", json_number(p.value)},
                      {"unit", json_string(p.unit)},
                      {"source", json_string(p.source)},
                      {"kind", json_string(p.kind)},
                      {"spread", json_or_null(p.spread)}});
}

std::string covariance_json(const Covariance& c) {
  return json_object({{"part", json_string(c.part)},
                      {"parameters", json_strings(c.parameters)},
                      {"values", numbers(c.values)},
                      {"covariance", numbers(c.matrix)}});
}

std::string group_json(const GroupErrors& g) {
  return json_object({{"name", json_string(g.name)},
                      {"points", json_number(static_cast<std::int64_t>(g.points))},
                      {"median_error", json_number(g.median)},
                      {"p90_error", json_number(g.p90)},
                      {"worst_error", json_number(g.worst)},
                      {"cross_validated_median", json_or_null(g.held_out_median)},
                      {"cross_validated_p90", json_or_null(g.held_out_p90)}});
}

std::string residual_json(const Residual& r) {
  return json_object({{"group", json_string(r.group)},
                      {"label", json_string(r.label)},
                      {"measured", json_number(r.measured)},
                      {"fitted", json_number(r.fitted)},
                      {"cross_validated", json_or_null(r.held_out)},
                      {"unit", json_string(r.unit)}});
}

template <class T, class ToJson>
std::string list(const std::vector<T>& items, ToJson to_one) {
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const T& item : items) {
    texts.push_back(to_one(item));
  }
  return json_list(texts, "  ");
}

}  // namespace

std::string to_json(const FitReport& report) {
  return fmt::format(
      "{{\n  \"format\": \"ulysim-result\",\n  \"version\": 1,\n  \"kind\": \"fit\",\n  \"name\": {},\n"
      "  \"parameters\": {},\n  \"covariances\": {},\n  \"groups\": {},\n  \"residuals\": {}\n}}\n",
      json_string(report.name), list(report.parameters, parameter_json), list(report.covariances, covariance_json),
      list(report.groups, group_json), list(report.residuals, residual_json));
}

}  // namespace ulysim::calibration
