// The process's annotations, from TIDEPOOL_CONFIG and tidepool_annotate, and what became of them.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/access/annotation.h"

namespace tidepool {

class Annotations {
 public:
  // With those of the environment.
  static Annotations& Get();

  void Add(Annotation annotation);
  // Grows with each Add: what was asked before may have another answer now.
  uint64_t generation() const;

  // What is stated of the kernel that the driver calls `name`, put to `access` (annotation.h). What
  // is refused is said once on stderr.
  Annotated Apply(const std::string& name, std::span<const ParamSlot> params, KernelAccess* access);
  // `replayable` does not hold, for what became known beside the kernel's own code.
  void RefuseReplay(const std::string& name, const Annotated& annotated, const std::string& why);

  // For the report, sorted: "NAME (annotation, FILE:LINE)"; "FILE:LINE: PATTERN", those that
  // matched no kernel that was launched; "NAME: FILE:LINE: ...".
  std::vector<std::string> Used() const;
  std::vector<std::string> Unused() const;
  std::vector<std::string> Refused() const;

 private:
  Annotations();
  struct Impl;
  Impl* impl_;
};

}  // namespace tidepool
