// SPDX-License-Identifier: Apache-2.0
// Runs a scenario with few replicates: example share/headlab/scenarios/quickstart.toml
#include <iostream>

#include "engine/run/run.h"
#include "engine/scenario/scenario.h"

int main(int argc, char** argv) try {
  const headlab::Scenario scenario =
      headlab::read_scenario(argc > 1 ? argv[1] : "", {"run.replicates=256"});
  for (const auto& condition : headlab::run(scenario).conditions) {
    const headlab::Estimate mse = condition.estimates.mse;
    std::cout << "MSE " << mse.value << " +- " << mse.mcse << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << "example: " << error.what() << '\n';
  return 2;
}
