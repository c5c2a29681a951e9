// A random program of device ops, run both plainly (reference memory, in program order) and through
// the engine on the fake driver; every byte that the program downloads must be the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/residency/engine.h"
#include "tests/residency/fake_driver.h"

namespace tidepool::testing {

// A device function of whole buffers: deterministic, and sensitive to every input byte.
struct OpShape {
  struct Use {
    uint64_t address = 0;
    uint64_t bytes = 0;  // of the buffer
    AccessMode mode = AccessMode::kNone;
    bool covers = false;  // kWrite: all bytes, whatever they were
    uint64_t first = 0;   // kWrite without covers, kUpdate: the bytes that it writes
    uint64_t count = 0;
  };
  uint64_t salt = 0;
  std::vector<Use> uses;
};

using MemoryRead = std::function<std::vector<uint8_t>(uint64_t address, uint64_t bytes)>;
using MemoryWrite = std::function<void(uint64_t address, const std::vector<uint8_t>& data)>;
void Execute(const OpShape& op, const MemoryRead& read, const MemoryWrite& write);

struct ProgramOptions {
  uint64_t page_bytes = 4096;
  uint64_t budget_pages = 32;
  uint32_t seed = 1;
  int ops = 200;
  int streams = 1;
  bool strict = false;
  uint64_t host_pages = 0;  // budget for swapping
  std::string policy = "dtr-eq";
  double opaque_share = 0.05;  // ops that cannot be replayed
  uint64_t fail_call = 0;      // the n-th driver call fails once
  CUresult fail_with = CUDA_SUCCESS;
};

struct ProgramResult {
  std::string difference;  // empty: every download had the right bytes
  std::vector<std::string> violations;
  uint64_t out_of_memory = 0;  // ops refused
  uint64_t errors = 0;         // other failures seen by the program
  uint64_t driver_calls = 0;
  uint64_t physical_after = 0;
  Statistics statistics;
};

ProgramResult RunProgram(const ProgramOptions& options);

}  // namespace tidepool::testing
