#include "runtime/access/kernel_access.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/access/analyzer.h"

namespace tidepool {

KernelAccess AnalyzeKernel(const ptx::Module& module, const ptx::Function& entry) {
  return Analyzer(module, entry).Run();
}

ModuleAccess AnalyzeModule(const ptx::Module& module) {
  ModuleAccess access;
  std::set<std::string> named;  // by some initializer: its address is in memory
  for (const ptx::Variable& variable : module.variables) {
    for (const ptx::Relocation& relocation : variable.relocations) named.insert(relocation.symbol);
    if (variable.space == ptx::Space::kShared) continue;
    // (An extern one is another module's too.)
    access.variables.push_back(
        {variable.name, variable.is_extern, !variable.relocations.empty(), variable.is_managed});
  }
  std::map<std::string, bool> written;
  std::set<std::string> kept;
  bool all = false, all_named = false;
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    access.kernels.push_back(AnalyzeKernel(module, function));
    const KernelAccess& kernel = access.kernels.back();
    // A store through an address that is not followed may hit any variable whose address is about.
    all |= kernel.opaque || kernel.unbased;
    all_named |= kernel.indirect && Writes(kernel.indirect_mode);
    for (const VariableAccess& variable : kernel.variables) {
      written[variable.name] |= Writes(variable.mode) || variable.escapes;
      if (variable.escapes) kept.insert(variable.name);
    }
  }
  for (ModuleVariableUse& use : access.variables) {
    use.written |= all || (all_named && named.contains(use.name)) || written[use.name];
    use.address_kept = all || named.contains(use.name) || kept.contains(use.name);
    written.erase(use.name);
  }
  // Those declared inside functions.
  for (const auto& [name, by_some] : written) access.variables.push_back({name, by_some || all});
  return access;
}

bool KernelAccess::Replayable() const { return NotReplayableReason().empty(); }

std::string KernelAccess::NotReplayableReason() const {
  if (opaque) return "opaque kernel: " + opaque_reason;
  if (indirect) return absl::StrCat("follows addresses loaded from memory, line ", indirect_line);
  if (unbased) {
    return absl::StrCat("uses addresses that come from no parameter, line ", unbased_line);
  }
  const std::pair<bool SideEffects::*, const char*> kObstacles[] = {
      {&SideEffects::prints, "prints"},
      {&SideEffects::allocates, "allocates device memory"},
      {&SideEffects::launches, "launches kernels"},
      {&SideEffects::reads_clock, "reads the clock"},
      {&SideEffects::reads_placement, "depends on where its blocks run"},
      {&SideEffects::reads_active, "depends on which lanes run together"},
      {&SideEffects::grid_sync, "synchronizes the whole grid"},
      {&SideEffects::system_scope, "communicates through memory"},
      {&SideEffects::ordered_atomics, "atomics whose result depends on their order"},
      {&SideEffects::textures, "textures or surfaces"},
      {&SideEffects::async_or_cluster, "bulk copies or clusters"},
  };
  for (const auto& [effect, text] : kObstacles) {
    if (!(effects.*effect)) continue;
    for (const EffectSite& site : sites) {
      if (site.effect == effect) {
        return absl::StrCat(text, " (", site.construct, ", line ", site.line, ")");
      }
    }
    return text;
  }
  for (const VariableAccess& variable : variables) {
    if (Writes(variable.mode)) {
      return absl::StrCat("writes module variable ", variable.name, ", line ", variable.line);
    }
    if (variable.escapes) {
      return absl::StrCat("stores the address of module variable ", variable.name, ", line ",
                          variable.line);
    }
  }
  return "";
}

}  // namespace tidepool
