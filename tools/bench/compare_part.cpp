// SPDX-License-Identifier: Apache-2.0
// What tools/bench/compare loads twice, once of each build: parts of the cpu backend's work, to be
// run in turn.
#include <cstdint>
#include <memory>
#include <string>

#include "engine/run/run.h"
#include "engine/scenario/scenario.h"
#include "kernels/backends.h"
#include "kernels/cpu/worker.h"
#include "tools/bench/compare_work.h"

namespace headlab::bench {
namespace {

struct Job {
  Plan plan;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CpuParts> parts;
  std::uint64_t replicates;
  std::uint64_t replicate = 0;
};

Plan plan_of(const CompareWork& work) {
  const std::string regression =
      work.cosines == 0 ? "{ law = \"zero\" }"
                        : "{ law = \"random_cosines\", terms = " + std::to_string(work.cosines) +
                              ", length_scale = 4.0 }";
  const std::string text =
      "[scenario]\nname = \"compare\"\n[data]\nn = " + std::to_string(work.n) +
      "\ndesign = { law = \"normal\", dim = " + std::to_string(work.d) +
      " }\nregression = " + regression + "\nnoise = { law = \"normal\", sd = 1 }\n" +
      "[heads]\ncount = " + std::to_string(work.heads) + "\ndim = " + std::to_string(work.k) +
      "\nsubspaces = { law = \"haar\" }\nkernel = { law = \"gaussian\", bandwidth = " +
      std::to_string(work.bandwidth) +
      " }\n[queries]\nlaw = \"design\"\ncount = " + std::to_string(work.queries) +
      "\n[run]\nreplicates = 8\nestimator = \"" + (work.conditional ? "conditional" : "plain") +
      "\"\nmoments = \"" + (work.aggregate ? "aggregate" : "pairwise") + "\"\n";
  return make_plan(parse_scenario(text, "compare").conditions.at(0));
}

}  // namespace
}  // namespace headlab::bench

extern "C" HEADLAB_COMPARED void* headlab_compare_make(const headlab::bench::CompareWork* work) {
  using namespace headlab;
  auto job = std::make_unique<bench::Job>(
      bench::Job{.plan = bench::plan_of(*work),
                 .backend = make_backend("cpu"),
                 .parts = nullptr,
                 .replicates = static_cast<std::uint64_t>(work->replicates)});
  job->parts = make_cpu_parts(job->plan);
  job->parts->draw(0);
  job->parts->project();
  return job.release();
}

extern "C" HEADLAB_COMPARED void headlab_compare_run(void* made, int part) {
  auto& job = *static_cast<headlab::bench::Job*>(made);
  switch (part) {
    case 0:
      job.parts->draw(job.replicate++);
      break;
    case 1:
      job.parts->project();
      break;
    case 2:
      job.parts->sum();
      break;
    default:
      headlab::simulate(job.plan, *job.backend, 1, job.replicates);
  }
}

extern "C" HEADLAB_COMPARED void headlab_compare_end(void* made) {
  delete static_cast<headlab::bench::Job*>(made);
}
