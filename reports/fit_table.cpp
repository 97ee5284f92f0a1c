#include "reports/fit_table.h"

#include <fmt/format.h>

#include <vector>

#include "reports/text.h"
#include "reports/verdict.h"

namespace ulysim::reports {

std::string fit_table(const results::FitResult& fit, std::size_t width) {
  std::vector<std::vector<Cell>> groups;
  for (const results::FitGroup& g : fit.groups) {
    groups.push_back({{.text = printable(g.name)},
                      {.text = fmt::to_string(g.points)},
                      {.text = percent(g.median_error)},
                      {.text = percent(g.p90_error)},
                      {.text = percent(g.worst_error)},
                      {.text = g.cross_validated_median ? percent(*g.cross_validated_median) : ""}});
  }
  std::string out = grid({{.title = "relative error of"},
                          {.title = "samples", .align = Align::right},
                          {.title = "median", .align = Align::right},
                          {.title = "90%", .align = Align::right},
                          {.title = "worst", .align = Align::right},
                          {.title = "unseen", .align = Align::right}},
                         groups, width);
  std::vector<std::vector<Cell>> parameters;
  for (const results::FittedParameter& p : fit.parameters) {
    parameters.push_back({{.text = printable(p.name)},
                          {.text = fmt::format("{}{}", p.value, printable(p.unit))},
                          {.text = printable(p.kind)}});
  }
  return out + '\n' +
         grid({{.title = "parameter"}, {.title = "value", .align = Align::right}, {.title = "kind"}}, parameters,
              width);
}

}  // namespace ulysim::reports
