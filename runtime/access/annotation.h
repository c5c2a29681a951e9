// Annotations put to one kernel. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/access/config.h"
#include "runtime/access/kernel_access.h"

namespace tidepool {

struct ParamSlot {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Annotated {
  bool applied = false;  // `access` says now what the annotations state, too
  bool pin = false;
  // The kernel is known by its annotations only: what lies in a buffer and is not in `stated`, is
  // to be taken as it would be without them.
  bool only_stated = false;
  std::vector<ParamSlot> stated;
  std::string no_replay;  // why the annotations leave it as one that cannot be replayed
  std::string where;      // of the annotations, for people
  std::string refused;    // why nothing was applied (but `pin`); empty if nothing is wrong
};

// Puts what `annotations`, all of which match the kernel, state together to `access`: the outcome
// of the analysis, or an opaque kernel if there is no PTX. What the analysis has found stays found;
// a statement against it refuses all of them, and `access` is left as it was. `params`: the layout,
// from the driver or the PTX.
Annotated Annotate(std::span<const Annotation* const> annotations,
                   std::span<const ParamSlot> params, KernelAccess* access);

}  // namespace tidepool
