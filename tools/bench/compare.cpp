// SPDX-License-Identifier: Apache-2.0
// headlab_compare OLD NEW SECONDS [FILTER]: runs parts of the cpu backend of two builds
// (libheadlab_compare_part.so) in turn, in one process, and prints how many times as fast the new
// one is: the median over pairs of neighbours, which hardly feels what else the machine does.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

#include "tools/bench/compare_work.h"

namespace headlab::bench {
namespace {

class Build {
 public:
  explicit Build(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) fail(dlerror());
    find(make, "headlab_compare_make");
    find(run, "headlab_compare_run");
    find(end, "headlab_compare_end");
  }
  void* (*make)(const CompareWork*) = nullptr;
  void (*run)(void*, int) = nullptr;
  void (*end)(void*) = nullptr;

 private:
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "headlab_compare: %s\n", why);
    std::exit(1);
  }
  template <class Function>
  void find(Function& function, const char* name) {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) fail(dlerror());
    std::memcpy(&function, &symbol, sizeof symbol);
  }
  void* library_;
};

struct Case {
  const char* name;
  CompareWork work;
};

CompareWork standard(long k, bool conditional, bool aggregate = false) {
  return {4096, 32, k, 8, 64, conditional, aggregate, 0, 64, 0.8 * std::sqrt(k)};
}

/// The median ratio of times, old over new.
double ratio(const Build (&builds)[2], void* const (&jobs)[2], int part, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> ratios;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (std::size_t turn = 0; turn < 3 || Clock::now() < end; ++turn) {
    double spent[2];
    for (std::size_t i : {turn % 2, (turn + 1) % 2}) {
      const auto start = Clock::now();
      builds[i].run(jobs[i], part);
      spent[i] = std::chrono::duration<double>(Clock::now() - start).count();
    }
    ratios.push_back(spent[0] / spent[1]);
  }
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

int compare(const char* const* paths, double seconds, const char* filter) {
  const Build builds[2] = {Build(paths[0]), Build(paths[1])};
  const std::vector<Case> cases = {
      {"plain, d_k 1", standard(1, false)},
      {"plain, d_k 4", standard(4, false)},
      {"plain, d_k 8", standard(8, false)},
      {"plain, d_k 16", standard(16, false)},
      {"plain, d_k 32", standard(32, false)},
      {"conditional, d_k 1", standard(1, true)},
      {"conditional, d_k 4", standard(4, true)},
      {"conditional, d_k 8", standard(8, true)},
      {"conditional, d_k 16", standard(16, true)},
      {"conditional, d_k 32", standard(32, true)},
      {"aggregate, d_k 4", standard(4, true, true)},
      {"128 heads", {1000, 32, 4, 128, 16, 1, 1, 0, 64, 1.6}},
      {"time_to_se", {2048, 16, 4, 8, 16, 1, 0, 4, 200, 0.5}},
      {"narrow windows", {2048, 16, 4, 8, 16, 1, 0, 4, 200, 0.25}},
      {"small", {50, 4, 1, 4, 8, 1, 0, 2, 2000, 0.8}},
  };
  const auto chosen = [&](const Case& one) { return std::strstr(one.name, filter) != nullptr; };
  if (std::ranges::none_of(cases, chosen)) {
    std::fprintf(stderr, "headlab_compare: no problem has \"%s\" in its name; there are", filter);
    for (const Case& one : cases) std::fprintf(stderr, " \"%s\"", one.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::printf("old / new time      %8s %8s %8s %8s\n", "draws", "project", "sums", "whole");
  for (const Case& one : cases) {
    if (!chosen(one)) continue;
    void* const jobs[2] = {builds[0].make(&one.work), builds[1].make(&one.work)};
    std::printf("%-19s", one.name);
    for (int part = 0; part < 4; ++part) {
      std::printf(" %8.3f", ratio(builds, jobs, part, seconds));
      std::fflush(stdout);
    }
    std::printf("\n");
    for (std::size_t i = 0; i < 2; ++i) builds[i].end(jobs[i]);
  }
  return 0;
}

}  // namespace
}  // namespace headlab::bench

int main(int count, char** arguments) {
  const double seconds = count > 3 ? std::atof(arguments[3]) : 0;
  if (count < 4 || count > 5 || !(seconds > 0)) {
    std::fprintf(stderr, "usage: headlab_compare OLD NEW SECONDS [FILTER]\n");
    return 2;
  }
  return headlab::bench::compare(arguments + 1, seconds, count > 4 ? arguments[4] : "");
}
