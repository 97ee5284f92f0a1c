// What only pictures need: the machine, one layer's time, what memory consists of.

#include <utility>

#include "reports/json.h"

namespace ulysim::reports {
namespace {

using config::Json;

/// The classes of links in the first plan that has figures; each plan has its own in `topology_links`.
const results::Figures* first_figures(const results::StudyResult& study) {
  for (const results::PlanResult& plan : study.plans) {
    if (plan.figures) {
      return &*plan.figures;
    }
  }
  return nullptr;
}

Json phase_json(const results::LayerPhase& phase) {
  std::vector<Json> of_stream(phase.streams.size(), Json::array());
  for (const results::TraceSpan& span : phase.spans) {
    of_stream[span.stream].push_back(Json::object({{"name", span.name},
                                                   {"purpose", span.purpose},
                                                   {"begin_s", json_seconds(span.begin)},
                                                   {"end_s", json_seconds(span.end)}}));
  }
  Json streams = Json::array();
  for (std::size_t i = 0; i < phase.streams.size(); ++i) {
    streams.push_back(Json::object({{"name", phase.streams[i]}, {"spans", std::move(of_stream[i])}}));
  }
  return Json::object({{"begin_s", json_seconds(phase.begin)},
                       {"end_s", json_seconds(phase.end)},
                       {"streams", std::move(streams)},
                       {"omitted_spans", phase.omitted_spans}});
}

}  // namespace

Json topology_json(const results::StudyResult& study) {
  const results::TopologyPicture& picture = study.topology;
  Json vertices = Json::array();
  for (std::size_t i = 0; i < picture.vertices.size(); ++i) {
    const auto& vertex = picture.vertices[i];
    vertices.push_back(Json::object({{"id", i}, {"name", vertex.name}, {"kind", vertex.kind}, {"node", vertex.node}}));
  }
  const results::Figures* figures = first_figures(study);
  Json links = Json::array();
  for (std::size_t i = 0; i < picture.links.size(); ++i) {
    const auto& link = picture.links[i];
    const bool used = figures != nullptr && i < figures->picture_links.size() && figures->picture_links[i];
    links.push_back(Json::object({{"from", link.from},
                                  {"to", link.to},
                                  {"class", used ? figures->links[*figures->picture_links[i]].name : std::string()},
                                  {"kind", link.kind},
                                  {"capacity_gb_s", link.capacity / 1e9}}));
  }
  return Json::object(
      {{"vertices", std::move(vertices)}, {"links", std::move(links)}, {"omitted_nodes", picture.omitted_nodes}});
}

Json layer_timeline_json(const results::LayerTimeline& timeline) {
  return Json::object({{"layer", timeline.layer},
                       {"forward", phase_json(timeline.forward)},
                       {"backward", phase_json(timeline.backward)}});
}

Json memory_by_kind_json(const results::Figures& figures) {
  Json times = Json::array();
  for (const results::MemorySample& sample : figures.memory_curve) {
    times.push_back(json_seconds(sample.at));
  }
  Json held = Json::array();
  for (const std::vector<Bytes>& kinds : figures.memory_by_kind.bytes) {
    Json row = Json::array();
    for (const Bytes bytes : kinds) {
      row.push_back(json_gib(bytes));
    }
    held.push_back(std::move(row));
  }
  return Json::object(
      {{"kinds", figures.memory_by_kind.kinds}, {"times_s", std::move(times)}, {"gib", std::move(held)}});
}

}  // namespace ulysim::reports
