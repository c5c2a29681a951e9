// Flow of control, and what warps and blocks do together.
#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"

namespace simgpu {

using tidepool::ptx::kNoIndex;
using Type = tidepool::ptx::Type;

namespace {

std::string NameOf(Type type) { return std::string(tidepool::ptx::Name(type)); }

}  // namespace

// The member mask of a .sync operation.
absl::Status Compiler::Members(const PtxInstr& in, size_t index, Draft* draft) {
  if (index >= in.operands.size()) return Unsupported(in);
  absl::StatusOr<Ref> mask = Source(in, in.operands[index], Type::kB32);
  if (!mask.ok()) return mask.status();
  draft->instr.f = *mask;
  draft->instr.control = Control::kConverge;
  return absl::OkStatus();
}

absl::Status Compiler::Shfl(const PtxInstr& in) {
  if (!Only(in, {"sync", "up", "down", "bfly", "idx"}) || in.type() != Type::kB32 ||
      in.operands.size() < 4) {
    return Unsupported(in);
  }
  const char* mode = in.Has("up")     ? "shfl.up"
                     : in.Has("down") ? "shfl.down"
                     : in.Has("bfly") ? "shfl.bfly"
                                      : "shfl.idx";
  Draft draft = Start(in);
  Ref* const slots[] = {&draft.instr.a, &draft.instr.b, &draft.instr.c};
  for (size_t k = 0; k < 3; ++k) {
    absl::StatusOr<Ref> source = Source(in, in.operands[k + 1], Type::kB32);
    if (!source.ok()) return source.status();
    *slots[k] = *source;
  }
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], Type::kB32);
  if (!d.ok()) return d.status();
  draft.instr.d = *d;
  if (!in.operands[0].second.empty()) {
    absl::StatusOr<Ref> e = Destination(in, in.operands[0].second[0], Type::kPred);
    if (!e.ok()) return e.status();
    draft.instr.e = *e;
  }
  if (in.Has("sync")) {
    if (absl::Status s = Members(in, 4, &draft); !s.ok()) return s;
  } else {
    draft.instr.control = Control::kGuarded;  // the lanes that happen to be here
  }
  return Put(in, mode, std::move(draft));
}

absl::Status Compiler::Vote(const PtxInstr& in) {
  if (!Only(in, {"sync", "all", "any", "uni", "ballot"}) || in.operands.size() < 2) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  draft.instr.aux = in.Has("all") ? 0 : in.Has("any") ? 1 : in.Has("uni") ? 2 : 3;
  absl::StatusOr<Ref> a = Source(in, in.operands[1], Type::kPred);
  if (!a.ok()) return a.status();
  draft.instr.a = *a;
  draft.instr.imm = in.operands[1].negated;
  absl::StatusOr<Ref> d =
      Destination(in, in.operands[0], draft.instr.aux == 3 ? Type::kB32 : Type::kPred);
  if (!d.ok()) return d.status();
  draft.instr.d = *d;
  if (in.Has("sync")) {
    if (absl::Status s = Members(in, 2, &draft); !s.ok()) return s;
  } else {
    draft.instr.control = Control::kGuarded;
  }
  return Put(in, "vote", std::move(draft));
}

// activemask, elect, match, redux.
absl::Status Compiler::WarpWide(const PtxInstr& in) {
  if (!Only(in, {"sync", "any", "all", "add", "min", "max", "and", "or", "xor"})) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  const bool elect = in.opcode == "elect";
  const Type type = in.type();
  if (in.opcode == "activemask") {
    draft.instr.control = Control::kGuarded;
  } else if (!in.Has("sync")) {
    return Unsupported(in);
  } else if (elect) {
    if (absl::Status s = Members(in, 1, &draft); !s.ok()) return s;
  } else {
    if (in.operands.size() != 3) return Unsupported(in);
    absl::StatusOr<Ref> a = Source(in, in.operands[1], type);
    if (!a.ok()) return a.status();
    draft.instr.a = *a;
    if (absl::Status s = Members(in, 2, &draft); !s.ok()) return s;
  }
  const Type result = in.opcode == "redux" ? type : Type::kB32;
  absl::StatusOr<Ref> d = Destination(in, in.operands[0], result);
  if (!d.ok()) return d.status();
  draft.instr.d = *d;
  if (!in.operands[0].second.empty()) {
    absl::StatusOr<Ref> e = Destination(in, in.operands[0].second[0], Type::kPred);
    if (!e.ok()) return e.status();
    draft.instr.e = *e;
  }
  std::string key = in.opcode;
  if (elect && draft.instr.e == kNoRef) return Unsupported(in);
  if (in.opcode == "match") absl::StrAppend(&key, in.Has("all") ? ".all." : ".any.", NameOf(type));
  if (in.opcode == "redux") {
    for (const char* name : {"add", "and", "or", "xor", "min", "max"}) {
      if (in.Has(name)) absl::StrAppend(&key, ".", name);
    }
    absl::StrAppend(&key, ".", NameOf(type));
  }
  return Put(in, key, std::move(draft));
}

absl::Status Compiler::Branch(const PtxInstr& in) {
  if (!Only(in, {"uni"}) || in.operands.size() != 1 ||
      in.operands[0].kind != Operand::Kind::kLabel) {
    return Unsupported(in);
  }
  Draft draft = Start(in);
  draft.instr.control = Control::kBranch;
  draft.instr.target = static_cast<uint32_t>(in.operands[0].bits);
  draft_.drafts.push_back(std::move(draft));
  return absl::OkStatus();
}

absl::Status Compiler::BranchTable(const PtxInstr& in) {
  if (!in.Has("idx") || in.operands.size() != 2) return Unsupported(in);
  absl::StatusOr<Ref> index = Source(in, in.operands[0], Type::kU32);
  if (!index.ok()) return index.status();
  Draft draft = Start(in);
  draft.instr.control = Control::kBranchTable;
  draft.instr.a = *index;
  for (size_t k = 0; k < function_.target_lists.size(); ++k) {
    if (function_.target_lists[k].name != in.operands[1].name) continue;
    draft.instr.target = static_cast<uint32_t>(k);
    draft_.drafts.push_back(std::move(draft));
    return absl::OkStatus();
  }
  return Unsupported(in);
}

// ret, exit, trap, brkpt.
absl::Status Compiler::Leave(const PtxInstr& in) {
  Draft draft = Start(in);
  draft.instr.control = in.opcode == "ret"    ? Control::kReturn
                        : in.opcode == "exit" ? Control::kExit
                                              : Control::kTrap;
  draft_.drafts.push_back(std::move(draft));
  return absl::OkStatus();
}

// bar and barrier; bar.warp.sync too.
absl::Status Compiler::Barrier(const PtxInstr& in) {
  Draft draft = Start(in);
  if (in.Has("warp")) {
    if (absl::Status s = Members(in, 0, &draft); !s.ok()) return s;
    draft.instr.control = Control::kWarpBarrier;
    draft_.drafts.push_back(std::move(draft));
    return absl::OkStatus();
  }
  if (!Only(in, {"cta", "sync", "arrive", "red", "aligned", "popc", "and", "or"})) {
    return Unsupported(in);
  }
  draft.instr.control = Control::kBarrier;
  const bool red = in.Has("red");
  BarrierKind kind = BarrierKind::kSync;
  if (in.Has("arrive")) kind = BarrierKind::kArrive;
  if (red) {
    kind = in.Has("popc")  ? BarrierKind::kRedPopc
           : in.Has("and") ? BarrierKind::kRedAnd
                           : BarrierKind::kRedOr;
  }
  draft.instr.aux = static_cast<uint16_t>(kind);
  std::vector<Operand> operands = in.operands;
  if (red) {
    // red: d, a {, b}, {!}c
    if (operands.size() < 3) return Unsupported(in);
    absl::StatusOr<Ref> d =
        Destination(in, operands[0], kind == BarrierKind::kRedPopc ? Type::kU32 : Type::kPred);
    absl::StatusOr<Ref> c = Source(in, operands.back(), Type::kPred);
    if (!d.ok()) return d.status();
    if (!c.ok()) return c.status();
    draft.instr.d = *d;
    draft.instr.c = *c;
    draft.instr.imm = operands.back().negated;
    operands.erase(operands.begin());
    operands.pop_back();
  }
  if (operands.empty() || operands.size() > 2) return Unsupported(in);
  absl::StatusOr<Ref> a = Source(in, operands[0], Type::kU32);
  if (!a.ok()) return a.status();
  draft.instr.a = *a;
  if (operands.size() == 2) {
    absl::StatusOr<Ref> b = Source(in, operands[1], Type::kU32);
    if (!b.ok()) return b.status();
    draft.instr.b = *b;
  } else if (kind == BarrierKind::kArrive) {
    return Unsupported(in);
  }
  if (!extensions_.empty()) return Unsupported(in);
  draft_.drafts.push_back(std::move(draft));
  return absl::OkStatus();
}

absl::Status Compiler::Call(const PtxInstr& in) {
  Draft draft = Start(in);
  draft.instr.control = Control::kCall;
  draft.instr.target = static_cast<uint32_t>(code_->sites.size());
  CallSite site;
  const Operand& callee = in.operands[0];
  const auto formal = [&](const Operand& operand, Formal* result) -> absl::Status {
    if (operand.kind == Operand::Kind::kSymbol && operand.variable != kNoIndex) {
      result->offset = static_cast<uint32_t>(locals_[operand.variable]);
      result->bytes = static_cast<uint32_t>(function_.locals[operand.variable].size);
      return absl::OkStatus();
    }
    if (operand.kind == Operand::Kind::kSymbol && operand.param != kNoIndex &&
        !function_.is_entry) {
      const auto& params = operand.is_return_param ? function_.returns : function_.params;
      result->offset = (operand.is_return_param ? return_offsets_ : param_offsets_)[operand.param];
      result->bytes = static_cast<uint32_t>(params[operand.param].size);
      return absl::OkStatus();
    }
    return Unsupported(in);  // register arguments: of an interface that is long gone
  };
  for (const auto& [operands, formals] :
       {std::pair(&in.call_args, &site.arguments), std::pair(&in.call_returns, &site.results)}) {
    for (const Operand& operand : *operands) {
      Formal f;
      if (absl::Status status = formal(operand, &f); !status.ok()) return status;
      formals->push_back(f);
    }
  }
  if (callee.kind == Operand::Kind::kRegister) {
    absl::StatusOr<Ref> token = Source(in, callee, Type::kU64);
    if (!token.ok()) return token.status();
    draft.instr.a = *token;
  } else if (auto it = symbols_.functions.find(callee.name); it != symbols_.functions.end()) {
    site.callee = it->second;
  } else if (callee.name == "vprintf") {
    site.builtin = CallSite::Builtin::kPrintf;
  } else if (callee.name == "__assertfail") {
    site.builtin = CallSite::Builtin::kAssert;
  } else if (callee.name == "malloc") {
    site.builtin = CallSite::Builtin::kMalloc;
  } else if (callee.name == "free") {
    site.builtin = CallSite::Builtin::kFree;
  } else {
    return absl::UnimplementedError(absl::StrCat("PTX line ", in.line, ": call of ", callee.name,
                                                 ", which has no body, in function ",
                                                 function_.name));
  }
  if (site.builtin == CallSite::Builtin::kPrintf && site.arguments.size() != 2) {
    return Unsupported(in);
  }
  // Which block gets which piece of the heap depends on who comes first.
  draft.ordered = site.builtin == CallSite::Builtin::kMalloc;
  code_->sites.push_back(std::move(site));
  draft_.drafts.push_back(std::move(draft));
  return absl::OkStatus();
}

}  // namespace simgpu
