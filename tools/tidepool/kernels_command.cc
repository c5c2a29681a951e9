// tidepool kernels PROGRAM: what each kernel of a program does with its parameters, as far as its
// PTX tells.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "ptx/parser.h"
#include "runtime/access/annotation.h"
#include "runtime/access/elf_image.h"
#include "runtime/access/kernel_access.h"
#include "runtime/access/kernel_name.h"
#include "tools/tidepool/commands.h"

namespace tidepool {
namespace {

const char* ModeName(AccessMode mode) {
  switch (mode) {
    case AccessMode::kNone:
      return "not accessed";
    case AccessMode::kRead:
      return "read";
    case AccessMode::kWrite:
      return "written";
    case AccessMode::kUpdate:
      return "updated";
  }
  return "?";
}

// Puts the annotations that match the kernel to `access`.
Annotated PutAnnotations(const std::vector<Annotation>& annotations, const ptx::Function& entry,
                         KernelAccess* access) {
  std::vector<const Annotation*> matching;
  for (const Annotation& annotation : annotations) {
    if (annotation.Matches(entry.name)) matching.push_back(&annotation);
  }
  if (matching.empty()) return {};
  std::vector<ParamSlot> params;
  for (const ptx::Param& param : entry.params) params.push_back({param.offset, param.size});
  return Annotate(matching, params, access);
}

void PrintKernel(const ptx::Function& entry, const KernelAccess& kernel,
                 const Annotated& annotated) {
  std::printf("%s\n", Demangled(entry.name).c_str());
  if (!annotated.refused.empty()) std::printf("  annotation %s\n", annotated.refused.c_str());
  if (annotated.pin) std::printf("  what it is handed is pinned (annotation)\n");
  if (kernel.opaque) {
    std::printf("  opaque: %s\n", kernel.opaque_reason.c_str());
    return;
  }
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const ptx::Param& param = entry.params[i];
    std::string line;
    for (const WordAccess& word : kernel.words) {
      if (word.offset < param.offset || word.offset >= param.offset + param.size) continue;
      if (word.bytes < 8) continue;  // an index
      // (Two numbers side by side that might be the halves of an address.)
      if (word.offset + word.bytes > param.offset + param.size) continue;
      if (!line.empty()) line += "; ";
      if (param.size > 8) absl::StrAppend(&line, "+", word.offset - param.offset, " ");
      absl::StrAppend(&line, ModeName(word.mode));
      if (word.atomics) line += ", atomically";
      if (word.escapes) line += ", its address is stored";
      if (word.evidence == Evidence::kAnnotation) {
        absl::StrAppend(&line, word.covers ? ", all of it" : "", " (annotation, ", annotated.where,
                        ")");
      } else {
        absl::StrAppend(&line, " (PTX analysis, line ", word.line, ")");
      }
    }
    std::printf("  parameter %zu, %llu bytes: %s\n", i, static_cast<unsigned long long>(param.size),
                !line.empty()           ? line.c_str()
                : annotated.only_stated ? "not stated, or ignored"
                                        : "a value");
  }
  for (const VariableAccess& variable : kernel.variables) {
    std::printf("  module variable %s: %s\n", variable.name.c_str(), ModeName(variable.mode));
  }
  const std::string reason =
      annotated.no_replay.empty() ? kernel.NotReplayableReason() : annotated.no_replay;
  std::printf("  %s\n",
              reason.empty() ? "can be replayed" : ("cannot be replayed: " + reason).c_str());
}

}  // namespace

int KernelsCommand(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    PrintError("usage: tidepool kernels PROGRAM");
    return kExitUsage;
  }
  std::vector<Annotation> annotations;
  if (const char* path = std::getenv("TIDEPOOL_CONFIG"); path != nullptr && *path != '\0') {
    absl::StatusOr<std::vector<Annotation>> read = ReadConfig(path);
    if (!read.ok()) {
      PrintError(absl::StrCat("TIDEPOOL_CONFIG: ", read.status().message()));
      return kExitUsage;
    }
    annotations = *std::move(read);
  }
  std::ifstream file(arguments[0], std::ios::binary);
  if (!file) {
    PrintError(absl::StrCat("cannot read ", arguments[0]));
    return 1;
  }
  const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)),
                                   std::istreambuf_iterator<char>());
  absl::StatusOr<std::vector<ptx::FatbinEntry>> entries = ReadElfFatbins(bytes);
  if (!entries.ok()) {
    PrintError(absl::StrCat(arguments[0], ": ", entries.status().message()));
    return 1;
  }
  size_t kernels = 0, replayable = 0;
  uint32_t best = 0;
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind == ptx::FatbinEntry::Kind::kPtx) best = std::max(best, entry.arch);
  }
  for (const ptx::FatbinEntry& entry : *entries) {
    if (entry.kind != ptx::FatbinEntry::Kind::kPtx || entry.arch != best) continue;
    absl::StatusOr<ptx::Module> module = ptx::Parse(entry.ptx);
    if (!module.ok()) {
      PrintError(absl::StrCat(arguments[0], ": ", module.status().message()));
      return 1;
    }
    for (const ptx::Function& function : module->functions) {
      if (!function.is_entry || !function.has_body) continue;
      KernelAccess access = AnalyzeKernel(*module, function);
      const Annotated annotated = PutAnnotations(annotations, function, &access);
      PrintKernel(function, access, annotated);
      ++kernels;
      replayable += access.Replayable() ? 1 : 0;
    }
  }
  if (kernels == 0) {
    PrintError(absl::StrCat(arguments[0], " carries no PTX: its kernels are opaque"));
    return 1;
  }
  std::printf("%zu kernels, %zu can be replayed\n", kernels, replayable);
  return 0;
}

}  // namespace tidepool
