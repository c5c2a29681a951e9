// Static evidence of coverage: which bytes a launch is certain to write, from the kernel's PTX, the
// launch's dimensions and its scalar arguments. It decides whether a buffer's old value is dead.
//
// The part of the kernel that store addresses and their conditions depend on is executed for all
// threads at once: values are affine forms over the thread's coordinates, and where an operation
// has no affine result (a comparison that some threads pass, a division) the threads are divided
// until it has. What depends on memory is unknown; a store whose address or condition is unknown
// counts for nothing. What is reported is therefore a part of what is written, never more.
//
// A launch that ends with an error (a trap, a fault) writes nothing that can be relied on; then
// nobody may look at it either.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ptx/ast.h"
#include "runtime/access/written_bytes.h"

namespace tidepool {

struct LaunchShape {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
};

// The bytes that are certainly written through one parameter word, relative to the word's value.
struct WordFootprint {
  uint32_t offset = 0;  // of the word in the parameter block
  std::vector<ByteRange> written;
  bool Covers(int64_t first, int64_t end) const;
};
using Footprint = std::vector<WordFootprint>;  // by offset

struct FootprintProgram;  // the slice of the kernel

// One kernel's footprints, by launch. Thread-safe.
class KernelFootprint {
 public:
  // Null if no store of the kernel can be followed at all.
  static std::shared_ptr<KernelFootprint> Build(const ptx::Module& module,
                                                const ptx::Function& entry);
  ~KernelFootprint();

  // `pointers`: the offsets of the 8-byte words that are addresses; all others are numbers. Answers
  // are kept by shape and by those numbers that matter.
  std::shared_ptr<const Footprint> Evaluate(const LaunchShape& shape,
                                            std::span<const uint8_t> parameters,
                                            std::span<const uint32_t> pointers) const;

 private:
  explicit KernelFootprint(std::unique_ptr<FootprintProgram> program);
  std::unique_ptr<FootprintProgram> program_;
  mutable std::mutex mutex_;
  mutable absl::flat_hash_map<std::string, std::shared_ptr<const Footprint>> known_;
};

}  // namespace tidepool
