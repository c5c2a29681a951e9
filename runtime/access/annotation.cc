#include "runtime/access/annotation.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace tidepool {
namespace {

AccessMode ModeOf(Claim claim) {
  switch (claim) {
    case Claim::kRead:
      return AccessMode::kRead;
    case Claim::kWrite:
      return AccessMode::kWrite;
    case Claim::kUpdate:
      return AccessMode::kUpdate;
    case Claim::kIgnore:
      break;
  }
  return AccessMode::kNone;
}

const char* Verb(const WordAccess& word) {
  if (word.mode == AccessMode::kRead) return "reads";
  if (word.mode == AccessMode::kWrite) return "writes";
  return word.mode == AccessMode::kUpdate ? "reads and writes" : "stores the address";
}

bool Overlap(const ParamSlot& slot, const WordAccess& word) {
  return word.offset < slot.offset + slot.bytes && slot.offset < word.offset + word.bytes;
}

struct Stated {
  ParamSlot slot;
  const ParameterClaim* claim = nullptr;
};

// Where the claim's word stands; or what is wrong with it.
std::string Place(const ParameterClaim& claim, std::span<const ParamSlot> params, ParamSlot* slot) {
  if (claim.by_offset) {
    *slot = {claim.number, 8};
    for (const ParamSlot& param : params) {
      if (slot->offset >= param.offset && slot->offset + 8 <= param.offset + param.bytes) return "";
    }
    return "no parameter has 8 bytes there";
  }
  if (claim.number >= params.size()) {
    return absl::StrCat("the kernel has ", params.size(), " parameters that are known");
  }
  *slot = params[claim.number];
  if (slot->bytes == 8 || claim.claim == Claim::kIgnore) return "";
  return absl::StrCat("the parameter has ", slot->bytes, " bytes",
                      slot->bytes > 8 ? ": state its words as +OFFSET" : ", and holds no address");
}

// What the analysis has found against the claim; empty if nothing.
std::string Against(const Stated& stated, const KernelAccess& access) {
  const Claim claim = stated.claim->claim;
  bool used = false;
  for (const WordAccess& word : access.words) {
    if (!Overlap(stated.slot, word)) continue;
    used = true;
    if ((claim == Claim::kRead && Writes(word.mode)) ||
        (claim == Claim::kWrite && Reads(word.mode)) || claim == Claim::kIgnore) {
      return absl::StrCat("the PTX ", Verb(word), " through it, line ", word.line);
    }
  }
  // Not followed, it may well be used; followed, the old content is alive.
  if (claim == Claim::kWrite && !used && !access.opaque) return "the PTX does not use it";
  return "";
}

// The access of an opaque kernel, by what is stated.
KernelAccess FromStated(const std::vector<Stated>& stated, bool replayable,
                        const KernelAccess& found) {
  KernelAccess access = found;
  access.opaque = false;
  access.opaque_reason.clear();
  access.unbased = false;  // to the analysis; the statement names all
  if (!replayable) {
    access.indirect = true;  // for all that is known
    access.indirect_mode = AccessMode::kUpdate;
  }
  access.words.clear();
  for (const Stated& one : stated) {
    if (one.claim->claim == Claim::kIgnore) continue;
    WordAccess word;
    word.offset = static_cast<uint32_t>(one.slot.offset);
    word.mode = ModeOf(one.claim->claim);
    word.covers = one.claim->claim == Claim::kWrite;
    word.evidence = Evidence::kAnnotation;
    for (const WordAccess& seen : found.words) {
      if (!Overlap(one.slot, seen)) continue;
      word.escapes |= seen.escapes;
      word.atomics |= seen.atomics;
    }
    access.words.push_back(word);
  }
  std::sort(access.words.begin(), access.words.end(),
            [](const WordAccess& a, const WordAccess& b) { return a.offset < b.offset; });
  return access;
}

// Places all claims; false with `refused` set if they do not go together or with the PTX.
bool Gather(std::span<const Annotation* const> annotations, std::span<const ParamSlot> params,
            const KernelAccess& access, std::vector<Stated>* stated, std::string* refused) {
  for (const Annotation* annotation : annotations) {
    for (const ParameterClaim& claim : annotation->parameters) {
      Stated one;
      one.claim = &claim;
      std::string wrong = Place(claim, params, &one.slot);
      if (wrong.empty()) wrong = Against(one, access);
      bool twice = false;
      for (const Stated& other : *stated) {
        if (other.slot.offset >= one.slot.offset + one.slot.bytes ||
            one.slot.offset >= other.slot.offset + other.slot.bytes) {
          continue;
        }
        twice = other.slot.offset == one.slot.offset && other.claim->claim == claim.claim;
        if (!twice) wrong = "stated beside " + other.claim->Text();
      }
      if (!wrong.empty()) {
        *refused = absl::StrCat(annotation->where, ": ", claim.Text(), " is refused: ", wrong);
        return false;
      }
      if (!twice) stated->push_back(one);
    }
  }
  return true;
}

}  // namespace

Annotated Annotate(std::span<const Annotation* const> annotations,
                   std::span<const ParamSlot> params, KernelAccess* access) {
  Annotated out;
  const Annotation* replayable = nullptr;
  for (const Annotation* annotation : annotations) {
    out.pin |= annotation->pin;
    if (annotation->replayable) replayable = annotation;
    absl::StrAppend(&out.where, out.where.empty() ? "" : ", ", annotation->where);
  }
  std::vector<Stated> stated;
  if (!Gather(annotations, params, *access, &stated, &out.refused)) return out;
  if (!access->opaque) {
    if (replayable != nullptr && !access->Replayable()) {
      out.refused =
          absl::StrCat(replayable->where,
                       ": replayable is refused: the PTX says: ", access->NotReplayableReason());
      return out;
    }
    for (const Stated& one : stated) {
      for (WordAccess& word : access->words) {
        if (one.claim->claim != Claim::kWrite || !Overlap(one.slot, word)) continue;
        word.covers = true;
        word.evidence = Evidence::kAnnotation;
      }
    }
    out.applied = true;
    return out;
  }
  if (stated.empty() && replayable == nullptr) return out;  // nothing but `pin`
  const KernelAccess made = FromStated(stated, replayable != nullptr, *access);
  if (replayable != nullptr && !made.Replayable()) {
    out.refused = absl::StrCat(
        replayable->where, ": replayable is refused: the PTX says: ", made.NotReplayableReason());
    return out;
  }
  *access = made;
  out.applied = out.only_stated = true;
  for (const Stated& one : stated) out.stated.push_back(one.slot);
  if (replayable == nullptr) out.no_replay = "annotated, but not as replayable";
  return out;
}

}  // namespace tidepool
