// How an op is issued again. The hooks make one per replayable op; lineage keeps it; residency
// issues it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

namespace tidepool {

// Exactly the arguments the op had, pointers in structs included. Immutable after construction.
class Replay {
 public:
  virtual ~Replay() = default;
  // Result: the driver's. Issued on `stream`, which need not be the original one.
  virtual CUresult Issue(CUstream stream) const = 0;
  virtual uint64_t footprint() const = 0;  // host bytes held
  // Identifies the loaded code that it runs; null: none.
  virtual const void* code() const { return nullptr; }
  // Whether it reads this module variable of that code.
  virtual bool ReadsVariable(std::string_view name) const {
    (void)name;
    return false;
  }
};

}  // namespace tidepool
