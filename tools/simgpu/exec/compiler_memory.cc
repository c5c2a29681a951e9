// Memory, warp-wide and control instructions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/simgpu/exec/compiler.h"

namespace simgpu {

using tidepool::ptx::Space;

absl::Status Compiler::CompileMemory(const PtxInstr& in, Instr* out) {
  if (in.opcode == "cvta") {
    absl::StatusOr<Ref> d = Destination(in.operands[0], in),
                        a = Source(in.operands[1], Type::kU64, in);
    if (!d.ok()) return d.status();
    if (!a.ok()) return a.status();
    out->d = *d;
    out->a = *a;
    const uint64_t window = in.space == Space::kShared  ? kSharedWindow
                            : in.space == Space::kLocal ? kLocalWindow
                                                        : 0;
    out->imm = static_cast<int64_t>(in.Has("to") ? 0 - window : window);
    return Use("cvta", in, out);
  }
  if (in.opcode == "isspacep") {
    absl::StatusOr<Ref> d = Destination(in.operands[0], in),
                        a = Source(in.operands[1], Type::kU64, in);
    if (!d.ok()) return d.status();
    if (!a.ok()) return a.status();
    out->d = *d;
    out->a = *a;
    out->imm = in.space == Space::kShared ? 0 : in.space == Space::kLocal ? 1 : 2;
    return Use("isspacep", in, out);
  }
  const bool load = in.opcode != "st";
  const Operand& address = in.operands[load ? 1 : 0];
  const Operand& value = in.operands[load ? 0 : 1];
  if (address.kind != Operand::Kind::kAddress || !address.elements.empty()) return Unsupported(in);
  if (in.Has("shared::cluster")) return Unsupported(in);
  std::string space = in.space == Space::kShared  ? "shared"
                      : in.space == Space::kLocal ? "local"
                      : in.space == Space::kParam ? "param"
                                                  : "global";
  out->imm = address.offset;
  if (address.reg != tidepool::ptx::kNoIndex) {
    out->a = Register(address.reg);
    Operand reg;
    reg.kind = Operand::Kind::kRegister;
    reg.reg = address.reg;
    out->aux = IsWide(reg);
  } else if (!address.name.empty() || address.variable != tidepool::ptx::kNoIndex ||
             address.param != tidepool::ptx::kNoIndex) {
    absl::StatusOr<uint64_t> at = SymbolValue(address, in);
    if (!at.ok()) return at.status();
    out->imm = static_cast<int64_t>(*at);
  }
  std::vector<Ref> refs;
  bool wide = false;
  std::vector<Operand> one = {value};
  const std::vector<Operand>& elements =
      value.kind == Operand::Kind::kVector ? value.elements : one;
  for (const Operand& element : elements) {
    absl::StatusOr<Ref> ref = load ? Destination(element, in) : Source(element, in.type(), in);
    if (!ref.ok()) return ref.status();
    if (load && element.kind == Operand::Kind::kSink) *ref = kNoRef;
    if (element.kind == Operand::Kind::kRegister) wide = wide || IsWide(element);
    refs.push_back(*ref);
  }
  const uint32_t bytes = tidepool::ptx::SizeOf(in.type());
  if (bytes == 0 || bytes > 8) return Unsupported(in);
  if (bytes == 8) wide = true;
  out->aux |= static_cast<uint16_t>(refs.size() << 8);
  out->d = refs[0];
  if (refs.size() > 1) out->list = List(refs);
  const bool is_signed = in.type() == Type::kS8 || in.type() == Type::kS16 ||
                         in.type() == Type::kS32 || in.type() == Type::kS64;
  if (space == "global") {
    const auto total = static_cast<uint8_t>(bytes * refs.size());
    (load ? out->bytes_read : out->bytes_written) = total;
  }
  return Use(absl::StrCat(load ? "ld." : "st.", space, load && is_signed ? ".s" : ".u", bytes * 8,
                          wide ? ".64" : ".32"),
             in, out);
}

absl::Status Compiler::CompileAtomic(const PtxInstr& in, Instr* out) {
  const bool red = in.opcode == "red";
  const size_t base = red ? 0 : 1;
  if (in.operands.size() < base + 2) return Unsupported(in);
  const Operand& address = in.operands[base];
  if (address.kind != Operand::Kind::kAddress || in.vector != 1) return Unsupported(in);
  const std::string space = in.space == Space::kShared ? "shared" : "global";
  if (in.space != Space::kShared && in.space != Space::kGlobal && in.space != Space::kGeneric) {
    return Unsupported(in);
  }
  out->imm = address.offset;
  if (address.reg != tidepool::ptx::kNoIndex) {
    out->a = Register(address.reg);
    Operand reg;
    reg.kind = Operand::Kind::kRegister;
    reg.reg = address.reg;
    out->aux = IsWide(reg);
  } else {
    absl::StatusOr<uint64_t> at = SymbolValue(address, in);
    if (!at.ok()) return at.status();
    out->imm = static_cast<int64_t>(*at);
  }
  std::string operation;
  for (const char* name : {"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"}) {
    if (in.Has(name)) operation = name;
  }
  if (operation.empty()) return Unsupported(in);
  const bool used = !red && in.operands[0].kind == Operand::Kind::kRegister;
  if (used) out->d = Register(in.operands[0].reg);
  absl::StatusOr<Ref> b = Source(in.operands[base + 1], in.type(), in);
  if (!b.ok()) return b.status();
  out->b = *b;
  if (operation == "cas") {
    absl::StatusOr<Ref> c = Source(in.operands[base + 2], in.type(), in);
    if (!c.ok()) return c.status();
    out->c = *c;
  }
  const bool is_float = in.type() == Type::kF32 || in.type() == Type::kF64;
  if (space == "global" && (used || is_float || operation == "exch" || operation == "cas" ||
                            operation == "inc" || operation == "dec")) {
    code_->ordered_atomics = true;
  }
  out->atomic = true;
  const uint32_t bytes = tidepool::ptx::SizeOf(in.type());
  if (space == "global") out->bytes_read = out->bytes_written = static_cast<uint8_t>(bytes);
  return Use(absl::StrCat("atom.", space, ".", operation, ".",
                          std::string(tidepool::ptx::Name(in.type()))),
             in, out);
}

absl::Status Compiler::CompileWarp(const PtxInstr& in, Instr* out) {
  const std::string& op = in.opcode;
  out->control = Control::kConverge;
  auto source = [&](size_t i, Type type, Ref* ref) -> absl::Status {
    if (i >= in.operands.size()) return Unsupported(in);
    absl::StatusOr<Ref> found = Source(in.operands[i], type, in);
    if (!found.ok()) return found.status();
    *ref = *found;
    return absl::OkStatus();
  };
  // `extra` is not used by these handlers; `target` carries the member mask's reference.
  auto members = [&](size_t i) -> absl::Status {
    Ref ref = kNoRef;
    if (absl::Status status = source(i, Type::kU32, &ref); !status.ok()) return status;
    out->target = static_cast<uint32_t>(ref);
    return absl::OkStatus();
  };
  absl::Status status;
  if (op == "bar") {  // bar.warp.sync mask
    if (status = members(0); !status.ok()) return status;
    return Use("nothing", in, out);
  }
  absl::StatusOr<Ref> d = Destination(in.operands[0], in);
  if (!d.ok()) return d.status();
  out->d = *d;
  if (op == "activemask") {
    out->control = Control::kNone;
    return Use("activemask", in, out);
  }
  if (!in.operands[0].second.empty()) {
    absl::StatusOr<Ref> e = Destination(in.operands[0].second[0], in);
    if (!e.ok()) return e.status();
    out->e = *e;
  }
  if (op == "shfl") {
    out->aux = in.Has("up") ? 0 : in.Has("down") ? 1 : in.Has("bfly") ? 2 : 3;
    for (auto [i, ref] : {std::pair<size_t, Ref*>{1, &out->a}, {2, &out->b}, {3, &out->c}}) {
      if (status = source(i, Type::kU32, ref); !status.ok()) return status;
    }
    if (in.Has("sync")) {
      if (status = members(4); !status.ok()) return status;
    } else {
      out->control = Control::kNone;
    }
    return Use("shfl", in, out);
  }
  if (op == "vote") {
    out->aux = in.Has("all") ? 0 : in.Has("any") ? 1 : in.Has("uni") ? 2 : 3;
    if (status = source(1, Type::kPred, &out->a); !status.ok()) return status;
    if (in.operands[1].kind == Operand::Kind::kInteger) {
      out->a = Constant(in.operands[1].bits != 0 ? ~0u : 0u, 4);
    }
    out->imm = in.operands[1].negated;
    if (in.Has("sync")) {
      if (status = members(2); !status.ok()) return status;
    } else {
      out->control = Control::kNone;
    }
    return Use("vote", in, out);
  }
  if (status = source(1, in.type(), &out->a); !status.ok()) return status;
  if (status = members(2); !status.ok()) return status;
  if (op == "match") {
    const bool wide = tidepool::ptx::SizeOf(in.type()) == 8;
    return Use(absl::StrCat("match.", in.Has("all") ? "all" : "any", wide ? ".b64" : ".b32"), in,
               out);
  }
  std::string key = "redux";
  for (const char* name : {"add", "and", "or", "xor", "min", "max"}) {
    if (in.Has(name)) absl::StrAppend(&key, ".", name);
  }
  if (in.Has("min") || in.Has("max")) {
    absl::StrAppend(&key, ".", std::string(tidepool::ptx::Name(in.type())));
  }
  return Use(key, in, out);
}

absl::Status Compiler::CompileControl(const PtxInstr& in, Instr* out) {
  const std::string& op = in.opcode;
  const auto here = static_cast<uint32_t>(code_->instrs.size());
  if (op == "bra") {
    if (in.operands[0].kind != Operand::Kind::kLabel) return Unsupported(in);
    out->control = Control::kBranch;
    fixups_.push_back({here, static_cast<uint32_t>(in.operands[0].bits)});
    return absl::OkStatus();
  }
  if (op == "brx") {
    absl::StatusOr<Ref> index = Source(in.operands[0], Type::kU32, in);
    if (!index.ok()) return index.status();
    out->control = Control::kBranchIndexed;
    out->a = *index;
    for (size_t i = 0; i < function_.target_lists.size(); ++i) {
      if (function_.target_lists[i].name == in.operands[1].name) {
        out->target = static_cast<uint32_t>(i);
        return absl::OkStatus();
      }
    }
    return Unsupported(in);
  }
  if (op == "ret") {
    out->control = function_.is_entry ? Control::kExit : Control::kReturn;
    return absl::OkStatus();
  }
  if (op == "exit") {
    out->control = Control::kExit;
    return absl::OkStatus();
  }
  if (op == "trap") {
    out->control = Control::kTrap;
    return absl::OkStatus();
  }
  if (op == "call") return CompileCall(in, out);
  // bar.sync 0 / barrier.sync 0: the whole block. Named barriers and counts are not modelled.
  if (in.Has("arrive") || in.Has("red") || in.Has("cluster")) return Unsupported(in);
  if (in.operands.empty() || in.operands.size() > 1 ||
      in.operands[0].kind != Operand::Kind::kInteger || in.operands[0].bits != 0) {
    return Unsupported(in);
  }
  out->control = Control::kBarrier;
  return absl::OkStatus();
}

absl::Status Compiler::CompileCall(const PtxInstr& in, Instr* out) {
  out->control = Control::kCall;
  auto site = std::make_unique<CallSite>();
  const Operand& callee = in.operands[0];
  auto formal = [&](const Operand& operand, Code::Formal* result) -> absl::Status {
    if (operand.kind == Operand::Kind::kSymbol && operand.variable != tidepool::ptx::kNoIndex) {
      result->offset = static_cast<uint32_t>(locals_[operand.variable]);
      result->bytes = static_cast<uint32_t>(function_.locals[operand.variable].size);
      return absl::OkStatus();
    }
    if (operand.kind == Operand::Kind::kSymbol && operand.param != tidepool::ptx::kNoIndex) {
      const auto& params = operand.is_return_param ? function_.returns : function_.params;
      result->offset = (operand.is_return_param ? return_offsets_ : param_offsets_)[operand.param];
      result->bytes = static_cast<uint32_t>(params[operand.param].size);
      return absl::OkStatus();
    }
    return Unsupported(in);  // register arguments are of an ABI that is long gone
  };
  for (const Operand& argument : in.call_args) {
    Code::Formal f;
    if (absl::Status status = formal(argument, &f); !status.ok()) return status;
    site->arguments.push_back(f);
  }
  for (const Operand& result : in.call_returns) {
    Code::Formal f;
    if (absl::Status status = formal(result, &f); !status.ok()) return status;
    site->results.push_back(f);
  }
  if (callee.kind == Operand::Kind::kRegister) {
    site->callee_register = Register(callee.reg);
  } else if (callee.name == "vprintf") {
    site->builtin = CallSite::Builtin::kPrintf;
  } else if (callee.name == "__assertfail") {
    site->builtin = CallSite::Builtin::kAssert;
  } else if (auto it = symbols_.functions.find(callee.name); it != symbols_.functions.end()) {
    site->callee = it->second;
  } else {
    return absl::UnimplementedError(absl::StrCat("PTX line ", in.line, ": call of ", callee.name,
                                                 ", which has no body, in function ",
                                                 function_.name));
  }
  out->extra = site.get();

  code_->sites.push_back(std::move(site));
  return absl::OkStatus();
}

}  // namespace simgpu
