#include "runtime/access/kernel_access.h"

#include "absl/strings/str_cat.h"
#include "runtime/access/analyzer.h"

namespace tidepool {

KernelAccess AnalyzeKernel(const ptx::Module& module, const ptx::Function& entry) {
  return Analyzer(module, entry).Run();
}

ModuleAccess AnalyzeModule(const ptx::Module& module) {
  ModuleAccess access;
  for (const ptx::Variable& variable : module.variables) {
    if (variable.space == ptx::Space::kShared) continue;
    access.variables.push_back({variable.name, false, !variable.relocations.empty()});
  }
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    access.kernels.push_back(AnalyzeKernel(module, function));
    const KernelAccess& kernel = access.kernels.back();
    for (ModuleVariableUse& use : access.variables) {
      // A store through an address that is not followed may hit any variable whose address is
      // about.
      if (kernel.opaque) use.written = true;
      for (const VariableAccess& variable : kernel.variables) {
        if (variable.name != use.name) continue;
        use.written |= Writes(variable.mode) || variable.escapes;
      }
    }
  }
  return access;
}

bool KernelAccess::Replayable() const { return NotReplayableReason().empty(); }

std::string KernelAccess::NotReplayableReason() const {
  if (opaque) return "opaque kernel: " + opaque_reason;
  if (indirect) return absl::StrCat("follows addresses loaded from memory, line ", indirect_line);
  if (unbased) return "uses addresses that come from no parameter";
  if (effects.prints) return "prints";
  if (effects.allocates) return "allocates device memory";
  if (effects.launches) return "launches kernels";
  if (effects.reads_clock) return "reads the clock";
  if (effects.reads_placement) return "depends on where its blocks run";
  if (effects.grid_sync) return "synchronizes the whole grid";
  if (effects.system_scope) return "communicates through memory";
  if (effects.ordered_atomics) return "atomics whose result depends on their order";
  if (effects.textures) return "textures or surfaces";
  if (effects.async_or_cluster) return "bulk copies or clusters";
  for (const VariableAccess& variable : variables) {
    if (Writes(variable.mode)) return "writes module variable " + variable.name;
    if (variable.escapes) return "stores the address of module variable " + variable.name;
  }
  return "";
}

}  // namespace tidepool
