// SPDX-License-Identifier: Apache-2.0
#include "kernels/host.h"

#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cpu/backend.h"
#include "kernels/parallel_for.h"
#include "kernels/testing/played_machine.h"

namespace headlab {
namespace {

std::string name_in(const std::string& cpuinfo) {
  std::istringstream text(cpuinfo);
  return processor_name_in(text);
}

TEST(Host, ReadsTheNameOfTheProcessor) {
  EXPECT_EQ(name_in("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: other\n"), "AMD EPYC");
  EXPECT_EQ(name_in("model name: " + std::string(300, 'x') + "\n"), std::string(300, 'x'));
  EXPECT_EQ(name_in("model name\t: Prozessor \u00fc\u4e2d  \n"), "Prozessor \u00fc\u4e2d");
}

TEST(Host, KnowsNoProcessorWithoutAName) {
  for (const char* const cpuinfo : {"", "model name", "model name\t:", "model name\t: \n",
                                    "processor\t: 0\nBogoMIPS\t: 50.00\n", "model namex\t: y\n"}) {
    EXPECT_EQ(name_in(cpuinfo), "unknown processor") << cpuinfo;
  }
}

TEST(Host, PlaysAnotherMachine) {
  const test::PlayedMachine machine{{"HEADLAB_PROCESSOR_NAME", "a processor of the tests"},
                                    {"HEADLAB_PROCESSORS", "64"},
                                    {"HEADLAB_SIMD", "portable"},
                                    {"HEADLAB_CLOCK", "86400"}};
  EXPECT_EQ(processor_name(), "a processor of the tests");
  EXPECT_EQ(usable_processors(), 64);
  EXPECT_EQ(online_processors(), 64);
  EXPECT_EQ(thread_count(0), 64);
  EXPECT_EQ(thread_count(3), 3);
  EXPECT_EQ(widest_simd(), "portable");
  EXPECT_EQ(cpu_targets().size(), 1u);
  EXPECT_EQ(wall_clock(), 86400);
}

TEST(Host, PlaysAMachineWithoutAName) {
  const test::PlayedMachine machine{{"HEADLAB_PROCESSOR_NAME", ""}};
  EXPECT_EQ(processor_name(), "unknown processor");
}

TEST(Host, RejectsWhatNoMachineIs) {
  for (const char* const value : {"", "0", "-1", "many", "4097", "8 "}) {
    const test::PlayedMachine machine{{"HEADLAB_PROCESSORS", value}};
    EXPECT_THROW(usable_processors(), std::invalid_argument) << value;
    EXPECT_THROW(online_processors(), std::invalid_argument) << value;
  }
  const test::PlayedMachine machine{{"HEADLAB_SIMD", "avx1024"}, {"HEADLAB_CLOCK", "now"}};
  EXPECT_THROW(widest_simd(), std::invalid_argument);
  EXPECT_THROW(wall_clock(), std::invalid_argument);
}

}  // namespace
}  // namespace headlab
