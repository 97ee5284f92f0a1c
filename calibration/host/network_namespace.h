#pragma once

#include <string>
#include <vector>

namespace ulysim::calibration::host {

/// Runs a program of the system with its arguments, without a shell; WorldError with its name when it fails.
void run_program(const std::vector<std::string>& command);

/// Puts this process into a network namespace of its own, which ends with it. WorldError where that is not permitted.
void enter_own_network();

/// From the parent: a virtual cable between the namespaces of two processes, an end called `kCableEnd` in each.
void join_networks(int first_pid, int second_pid);

/// Inside: address 10.77.0.(rank + 1), up, and a token bucket that lets through `rate` ("1gbit") as `tc` writes it.
/// The bucket holds 32 kB, or messages under its size would pass at the speed of memory.
std::string configure_network(int rank, const std::string& rate);

}  // namespace ulysim::calibration::host
