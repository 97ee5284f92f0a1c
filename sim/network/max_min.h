#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ulysim::network {

// Max-min fairness
// ----------------
// Links l have a capacity C(l) in bytes per second, flows f cross a set of links L(f). Rates r(f) are feasible when
//
//     for every link l:   sum of r(f) over the flows f that cross l   <=   C(l)                                  (1)
//
// and max-min fair when no r(f) can grow without shrinking some r(g) <= r(f). Equivalently (Bertsekas and Gallager,
// Data Networks, section 6.5.2): (1) holds and every flow crosses a *bottleneck*, a saturated link on which no other
// flow is faster than it. Such rates exist and are unique.
//
// They are found by progressive filling. All flows start unfrozen, every link has left(l) = C(l); then, level by level:
//
//     level   = min over links with unfrozen flows of   left(l) / unfrozen(l)                                    (2)
//     freeze at `level` every flow that crosses a link where (2) is attained
//     left(l) -= frozen now on l × level;    unfrozen(l) -= frozen now on l
//
// Worked example: links A = 10, B = 6, C = 20; flows 1: A, 2: A B, 3: B C, 4: C.
//     shares  A 10/2 = 5, B 6/2 = 3, C 20/2 = 10: level 3, B is full: flows 2 and 3 get 3
//     left    A 10 - 3 = 7 for flow 1, C 20 - 3 = 17 for flow 4
//     shares  A 7/1, C 17/1: level 7: flow 1 gets 7; then level 17: flow 4 gets 17
//
// What the model says and does not say: senders are greedy and adapt at once, links are lossless and switches never
// block inside. That is the fluid model of SimGrid (Velho et al., ACM TOMACS 23(4), 2013, without its TCP terms);
// latency, protocol overhead and congestion trees are somebody else's numbers.
//
// Folding. A flow *class* stands for member flows that a symmetry of the machine maps onto each other, a link class
// for such links; members share one rate, so one equation (1) per link class is enough, with the number of class
// members on one member link as the factor. Counts are integers and a level subtracts once from each link, so the
// operands of every + − × ÷ are the same numbers folded and unfolded, in any order of classes: results are bit-equal.
// Links tie in (2) only when the quotients are equal bit by bit. Quotients that differ by rounding alone are two
// levels a rounding error apart, which is harmless and the same on every machine; a tolerance here would make the
// result depend on the order of links.

/// A class of flows crosses a class of links: each member link carries `flows` members of the flow class.
/// Unfolded, every class has one member and `flows` is 1.
struct Crossing {
  std::uint32_t link{};   ///< link class
  std::uint32_t flows{};  ///< member flows on one member link, > 0
};

/// Max-min fair rates, an object without a clock: capacities and crossings in, rates out.
/// Allocates nothing once it has seen its largest problem.
class MaxMin {
 public:
  /// `capacities`: bytes per second of one member link, by link class; all > 0 and finite.
  explicit MaxMin(std::vector<double> capacities);

  /// `classes[i]`: the crossings of flow class i (at least one). `rates[i]`: bytes per second of one member.
  /// Keeps integer flow counts per link and subtracts count × rate once per level, in class order, so a folded
  /// problem and its unfolding give bit-equal rates.
  void solve(std::span<const std::span<const Crossing>> classes, std::vector<double>& rates);

  [[nodiscard]] std::span<const double> capacities() const { return capacities_; }

 private:
  void load(std::span<const std::span<const Crossing>> classes);
  double next_level();

  // By link; valid for the loaded links only.
  struct Load {
    double left{};              ///< capacity not yet given away
    double share{};             ///< left / unfrozen
    std::uint64_t unfrozen{};   ///< member flows without a rate
    std::uint64_t freezing{};   ///< member flows that get theirs in this level
    std::size_t users_begin{};  ///< the classes that cross the link: users_[users_begin … users_end)
    std::size_t users_end{};
  };
  std::vector<double> capacities_;
  std::vector<Load> loads_;
  std::vector<std::uint32_t> loaded_;   ///< links that some class crosses
  std::vector<std::uint32_t> live_;     ///< of those, the ones with unfrozen flows
  std::vector<std::uint32_t> full_;     ///< where this level's minimum is attained
  std::vector<std::uint32_t> touched_;  ///< where flows freeze in this level
  std::vector<std::uint32_t> users_;    ///< class indices, link by link
  std::vector<std::uint8_t> frozen_;    ///< by class
};

}  // namespace ulysim::network
