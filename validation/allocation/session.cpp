// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/session.h"

#include <memory>
#include <stdexcept>

#include "engine/files/error.h"
#include "kernels/backends.h"

namespace headlab {
namespace {

std::shared_ptr<const Backend> backend_called(const std::string& name) {
  try {
    return make_backend(name);
  } catch (const std::invalid_argument& error) {
    throw Refused(error.what());
  }
}

}  // namespace

Session::Session(const AllocateOptions& options) : options_(options) {
  if (options.replicates < least_selection_look) {
    throw Refused("--replicates " + std::to_string(options.replicates) +
                  ": too few for a selection (allowed: at least " +
                  std::to_string(least_selection_look) + ")");
  }
  laboratory_ = {.backend = backend_called(options.backend),
                 .threads = options.threads,
                 .stop = [this] { return stop(); }};
}

double Session::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool Session::interrupted() const {
  return options_.stop && options_.stop->load();
}

bool Session::stop() const {
  return interrupted() || (options_.max_seconds && seconds() >= *options_.max_seconds);
}

ShareDone Session::tell(const std::string& stage) const {
  if (!options_.progress) return {};
  return [this, stage](double share) {
    options_.progress({.stage = stage, .share = share, .seconds = seconds()});
  };
}

}  // namespace headlab
