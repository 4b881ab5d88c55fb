// SPDX-License-Identifier: Apache-2.0
/// \file What the program learns from the machine that it runs on. Nothing else asks the system for
/// these, so that tests can play another machine; the variables are for them:
///
///     HEADLAB_PROCESSOR_NAME   name of the processor
///     HEADLAB_PROCESSORS       number of processors, 1 to 4096
///     HEADLAB_SIMD             widest SIMD target: avx512, avx2, portable
///     HEADLAB_MEMORY_LIMIT     bytes of memory available (engine/files/available_memory.h)
///     HEADLAB_CLOCK            the time, in seconds since 1970
///
/// A value that is not such a number or target throws std::invalid_argument("VARIABLE: ...").
#pragma once

#include <ctime>
#include <functional>
#include <istream>
#include <string>

namespace headlab {

/// Value of a variable of the environment, null where it is not set.
using Environment = std::function<const char*(const char* name)>;

/// The environment of this process.
const char* environment_variable(const char* name);

/// Name of the processor as the system reports it, in one line of any bytes; "unknown processor"
/// where it reports none.
std::string processor_name();

/// The same from the text of /proc/cpuinfo.
std::string processor_name_in(std::istream& cpuinfo);

/// Processors that this process may use, and those of the machine.
int usable_processors();
int online_processors();

/// The least of what the machine has, of the affinity of the process, as a batch system or taskset
/// sets it, and of the quota of its control groups.
struct UsableProcessors {
  int count = 1;
  std::string limit;  ///< "machine", "affinity" or "control group", or the variable that plays one
};
UsableProcessors usable_processors_here();

/// The SIMD target that no computation may exceed, as --simd names it; empty: that of the machine.
std::string widest_simd();

/// Name of the machine in its network.
std::string machine_name();

/// Seconds since 1970.
std::time_t wall_clock();

}  // namespace headlab
