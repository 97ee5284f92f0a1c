#pragma once

#include <vector>

#include "hw_models/topology/plan.h"

namespace ulysim::topology {

// The fabrics: each joins the NICs of all nodes. Listed in catalog.cpp.
void add_rails(const spec::Cluster& cluster, const std::vector<Nic>& nics, Plan& plan);
void add_fat_tree(const spec::Cluster& cluster, const std::vector<Nic>& nics, Plan& plan);

}  // namespace ulysim::topology
