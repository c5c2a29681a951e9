// Layout, operands, and the instructions that are plain arithmetic.
#include "tools/simgpu/exec/compiler.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace simgpu {

using tidepool::ptx::Space;
using tidepool::ptx::Variable;
using PtxType = tidepool::ptx::Type;

namespace {

uint32_t LaneBytes(PtxType type) {
  if (type == PtxType::kPred) return 0;
  return tidepool::ptx::SizeOf(type) == 8 ? 8 : 4;
}

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

absl::Status Compiler::Unsupported(const PtxInstr& in) const {
  return absl::UnimplementedError(absl::StrCat("PTX line ", in.line, ": ", in.FullName(),
                                               " in function ", function_.name,
                                               " is not supported"));
}

absl::Status Compiler::Use(const std::string& key, const PtxInstr& in, Instr* out) {
  auto it = Handlers().find(key);
  if (it == Handlers().end()) return Unsupported(in);
  out->handler = it->second;
  return absl::OkStatus();
}

absl::Status Compiler::Layout() {
  uint32_t offset = 0;
  for (const tidepool::ptx::Register& reg : function_.registers) {
    registers_.push_back(static_cast<Ref>(offset));
    const uint32_t lane = LaneBytes(reg.type);
    if (tidepool::ptx::SizeOf(reg.type) > 8) {
      return absl::UnimplementedError(
          absl::StrCat("128-bit register ", reg.name, " in function ", function_.name));
    }
    offset += lane == 0 ? 8 : lane * kLanes;
    offset = static_cast<uint32_t>(RoundUp(offset, lane == 0 ? 8 : 32));
  }
  carry_ = static_cast<Ref>(offset);
  offset += 32;
  code_->register_bytes = offset;

  uint64_t local = 0, shared = 0, param = 0;
  for (const Variable& variable : function_.locals) {
    const uint64_t align = std::max<uint64_t>(1, variable.align);
    switch (variable.space) {
      case Space::kLocal:
        local = RoundUp(local, align);
        locals_.push_back(local);
        local += variable.size;
        break;
      case Space::kShared:
        if (variable.is_extern || variable.size == 0) {
          locals_.push_back(symbols_.dynamic_shared_offset);
        } else {
          auto it = symbols_.shared_offsets.find(function_.name + "\n" + variable.name);
          locals_.push_back(it == symbols_.shared_offsets.end() ? shared : it->second);
        }
        break;
      case Space::kParam:
        param = RoundUp(param, std::max<uint64_t>(8, align));
        locals_.push_back(param);
        param += variable.size;
        break;
      default:
        return absl::UnimplementedError(absl::StrCat("variable ", variable.name, " in function ",
                                                     function_.name, " is in an unknown space"));
    }
  }
  auto formals = [&](const std::vector<tidepool::ptx::Param>& params,
                     std::vector<uint32_t>* offsets, std::vector<Code::Formal>* out) {
    for (const tidepool::ptx::Param& p : params) {
      param = RoundUp(param, std::max<uint64_t>(8, p.align));
      if (function_.is_entry) param = p.offset;
      offsets->push_back(static_cast<uint32_t>(param));
      out->push_back({static_cast<uint32_t>(param), static_cast<uint32_t>(p.size),
                      p.is_register ? Register(p.reg) : kNoRef});
      param += p.size;
    }
  };
  if (function_.is_entry) {
    // Kernel parameters come first in parameter memory, at their own offsets; call arguments
    // behind.
    const uint64_t base = RoundUp(function_.param_bytes, 16);
    for (size_t i = 0; i < function_.locals.size(); ++i) {
      if (function_.locals[i].space == Space::kParam) locals_[i] += base;
    }
    const uint64_t end = param + base;
    param = 0;
    formals(function_.params, &param_offsets_, &code_->formals);
    param = end;
  } else {
    formals(function_.params, &param_offsets_, &code_->formals);
    formals(function_.returns, &return_offsets_, &code_->returns);
  }
  code_->param_bytes = static_cast<uint32_t>(RoundUp(param, 16));
  code_->local_bytes = static_cast<uint32_t>(RoundUp(local, 16));
  return absl::OkStatus();
}

absl::Status Compiler::Compile() {
  code_->name = function_.name;
  if (absl::Status status = Layout(); !status.ok()) return status;
  for (const PtxInstr& in : function_.body) {
    starts_.push_back(static_cast<uint32_t>(code_->instrs.size()));
    if (absl::Status status = CompileInstr(in); !status.ok()) return status;
  }
  starts_.push_back(static_cast<uint32_t>(code_->instrs.size()));
  Instr end;
  end.control = Control::kReturn;
  Emit(end);  // control may run off the end of a function
  for (const auto& [instr, target] : fixups_) {
    code_->instrs[instr].target = starts_[std::min<size_t>(target, starts_.size() - 1)];
  }
  for (const auto& list : function_.target_lists) {
    std::vector<uint32_t> targets;
    for (uint32_t index : list.indices) {
      targets.push_back(starts_[std::min<size_t>(index, starts_.size() - 1)]);
    }
    code_->targets.push_back(std::move(targets));
  }
  return absl::OkStatus();
}

Ref Compiler::Constant(uint64_t bits, uint32_t lane_bytes) {
  auto& table = lane_bytes == 8 ? constants64_ : constants32_;
  if (lane_bytes != 8) bits &= 0xffffffffu;
  auto [it, inserted] = table.try_emplace(bits, 0);
  if (inserted) {
    const size_t at = code_->constants.size();
    code_->constants.resize(at + lane_bytes * kLanes);
    for (int i = 0; i < kLanes; ++i) {
      std::memcpy(code_->constants.data() + at + i * lane_bytes, &bits, lane_bytes);
    }
    it->second = ~static_cast<Ref>(at);
  }
  return it->second;
}

Ref Compiler::Temporary(uint32_t lane_bytes) {
  const Ref ref = static_cast<Ref>(code_->register_bytes);
  code_->register_bytes += lane_bytes * kLanes;
  return ref;
}

const Ref* Compiler::List(std::vector<Ref> refs) {
  code_->lists.push_back(std::make_unique<std::vector<Ref>>(std::move(refs)));
  return code_->lists.back()->data();
}

bool Compiler::IsWide(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister &&
         LaneBytes(function_.registers[operand.reg].type) == 8;
}

absl::StatusOr<uint64_t> Compiler::SymbolValue(const Operand& operand, const PtxInstr& in) {
  const auto offset = static_cast<uint64_t>(operand.offset);
  if (operand.variable != tidepool::ptx::kNoIndex) return locals_[operand.variable] + offset;
  if (operand.param != tidepool::ptx::kNoIndex) {
    return (operand.is_return_param ? return_offsets_ : param_offsets_)[operand.param] + offset;
  }
  if (auto it = symbols_.addresses.find(operand.name); it != symbols_.addresses.end()) {
    return it->second + offset;
  }
  if (auto it = symbols_.shared_offsets.find(operand.name); it != symbols_.shared_offsets.end()) {
    return it->second + offset;
  }
  if (auto it = symbols_.function_tokens.find(operand.name); it != symbols_.function_tokens.end()) {
    return it->second;
  }
  return absl::InvalidArgumentError(absl::StrCat("PTX line ", in.line, ": unknown symbol ",
                                                 operand.name, " in function ", function_.name));
}

absl::StatusOr<Ref> Compiler::Source(const Operand& operand, Type type, const PtxInstr& in) {
  const uint32_t lane = LaneBytes(type) == 0 ? 4 : LaneBytes(type);
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return Register(operand.reg);
    case Operand::Kind::kInteger: {
      uint64_t bits = operand.bits;
      if (type == Type::kF32) {
        const auto value = static_cast<float>(static_cast<int64_t>(bits));
        bits = 0;
        std::memcpy(&bits, &value, sizeof(value));
      } else if (type == Type::kF64) {
        const auto value = static_cast<double>(static_cast<int64_t>(bits));
        std::memcpy(&bits, &value, sizeof(value));
      }
      return Constant(bits, lane);
    }
    case Operand::Kind::kFloat: {
      uint64_t bits = operand.bits;
      if (operand.single && lane == 8) {
        float narrow = 0;
        std::memcpy(&narrow, &bits, sizeof(narrow));
        const double wide = narrow;
        std::memcpy(&bits, &wide, sizeof(wide));
      } else if (!operand.single && lane == 4) {
        double wide = 0;
        std::memcpy(&wide, &bits, sizeof(wide));
        const auto narrow = static_cast<float>(wide);
        bits = 0;
        std::memcpy(&bits, &narrow, sizeof(narrow));
      }
      return Constant(bits, lane);
    }
    case Operand::Kind::kSymbol: {
      absl::StatusOr<uint64_t> value = SymbolValue(operand, in);
      if (!value.ok()) return value.status();
      return Constant(*value, lane);
    }
    case Operand::Kind::kSpecial: {
      if (operand.name == "WARP_SZ") return Constant(kLanes, lane);
      Instr special;
      special.line = in.line;
      if (absl::Status status = CompileSpecial(operand.name, &special); !status.ok()) return status;
      special.d = Temporary(lane);
      special.imm = lane == 8;
      Emit(special);
      return special.d;
    }
    default:
      return Unsupported(in);
  }
}

absl::StatusOr<Ref> Compiler::Destination(const Operand& operand, const PtxInstr& in) {
  if (operand.kind == Operand::Kind::kRegister) return Register(operand.reg);
  if (operand.kind == Operand::Kind::kSink) return Temporary(8);
  return Unsupported(in);
}

absl::Status Compiler::CompileSpecial(const std::string& name, Instr* out) {
  static const auto* names = new std::unordered_map<std::string, uint16_t>{
      {"%tid.x", 0},           {"%tid.y", 1},           {"%tid.z", 2},
      {"%ntid.x", 3},          {"%ntid.y", 4},          {"%ntid.z", 5},
      {"%ctaid.x", 6},         {"%ctaid.y", 7},         {"%ctaid.z", 8},
      {"%nctaid.x", 9},        {"%nctaid.y", 10},       {"%nctaid.z", 11},
      {"%laneid", 12},         {"%warpid", 13},         {"%nwarpid", 14},
      {"%lanemask_eq", 15},    {"%lanemask_lt", 16},    {"%lanemask_le", 17},
      {"%lanemask_gt", 18},    {"%lanemask_ge", 19},    {"%clock", 20},
      {"%clock64", 20},        {"%clock_hi", 27},       {"%globaltimer", 21},
      {"%globaltimer_lo", 21}, {"%globaltimer_hi", 27}, {"%smid", 22},
      {"%nsmid", 23},          {"%gridid", 24},         {"%dynamic_smem_size", 25},
      {"%total_smem_size", 26}};
  auto it = names->find(name);
  if (it == names->end()) {
    return absl::UnimplementedError(
        absl::StrCat("special register ", name, " in function ", function_.name));
  }
  out->handler = Handlers().at("special");
  out->aux = it->second;
  return absl::OkStatus();
}

absl::Status Compiler::CompileInstr(const PtxInstr& in) {
  Instr out;
  out.line = in.line;
  if (in.guard != tidepool::ptx::kNoIndex) {
    out.guard = Register(in.guard);
    out.guard_negated = in.guard_negated;
  }
  const std::string& op = in.opcode;
  absl::Status status;
  if (op == "mov") return CompileMov(in, out);
  if (op == "cvt") {
    status = CompileCvt(in, &out);
  } else if (op == "setp" || op == "set") {
    status = CompileSetp(in, &out);
  } else if (op == "ld" || op == "ldu" || op == "st" || op == "cvta" || op == "isspacep") {
    status = CompileMemory(in, &out);
  } else if (op == "atom" || op == "red") {
    status = CompileAtomic(in, &out);
  } else if (op == "shfl" || op == "vote" || op == "activemask" || op == "match" || op == "redux" ||
             (op == "bar" && in.Has("warp"))) {
    status = CompileWarp(in, &out);
  } else if (op == "bra" || op == "brx" || op == "ret" || op == "exit" || op == "bar" ||
             op == "barrier" || op == "trap" || op == "call") {
    status = CompileControl(in, &out);
  } else if (op == "membar" || op == "fence" || op == "nanosleep" || op == "prefetch" ||
             op == "prefetchu" || op == "pmevent" || op == "brkpt") {
    out.handler = Handlers().at("nothing");
    // A pause lets others run, which a barrier-less spin may need.
  } else {
    status = Arithmetic(in, &out);
  }
  if (!status.ok()) return status;
  Emit(out);
  return absl::OkStatus();
}

absl::Status Compiler::CompileMov(const PtxInstr& in, Instr out) {
  const Operand& to = in.operands[0];
  const Operand& from = in.operands[1];
  const uint32_t size = tidepool::ptx::SizeOf(in.type());
  if (from.kind == Operand::Kind::kVector) {
    if (from.elements.size() != 2) return Unsupported(in);
    const Type part = size == 8 ? Type::kB32 : Type::kB16;
    absl::StatusOr<Ref> d = Destination(to, in), a = Source(from.elements[0], part, in),
                        b = Source(from.elements[1], part, in);
    if (!d.ok() || !a.ok() || !b.ok()) return Unsupported(in);
    out.d = *d;
    out.a = *a;
    out.b = *b;
    absl::Status status = Use(size == 8 ? "pack.64" : "pack.32", in, &out);
    if (status.ok()) Emit(out);
    return status;
  }
  if (to.kind == Operand::Kind::kVector) {
    if (to.elements.size() != 2) return Unsupported(in);
    absl::StatusOr<Ref> a = Source(from, in.type(), in);
    if (!a.ok()) return a.status();
    // Both parts are taken before either is written: the source may be one of them.
    const Ref copy = Temporary(size == 8 ? 8 : 4);
    out.d = copy;
    out.a = *a;
    absl::Status status = Use(size == 8 ? "mov.64" : "mov.32", in, &out);
    if (!status.ok()) return status;
    Emit(out);
    for (int i = 0; i < 2; ++i) {
      if (to.elements[i].kind == Operand::Kind::kSink) continue;
      Instr part = out;
      absl::StatusOr<Ref> d = Destination(to.elements[i], in);
      if (!d.ok()) return d.status();
      part.d = *d;
      part.a = copy;
      status = Use(absl::StrCat("unpack.", size == 8 ? "64." : "32.", i), in, &part);
      if (!status.ok()) return status;
      Emit(part);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Ref> d = Destination(to, in);
  if (!d.ok()) return d.status();
  out.d = *d;
  if (from.kind == Operand::Kind::kSpecial && from.name != "WARP_SZ") {
    absl::Status status = CompileSpecial(from.name, &out);
    out.imm = size == 8;
    if (status.ok()) Emit(out);
    return status;
  }
  absl::StatusOr<Ref> a = Source(from, in.type(), in);
  if (!a.ok()) return a.status();
  out.a = *a;
  absl::Status status;
  if (in.type() == Type::kPred) {
    if (from.kind == Operand::Kind::kInteger) out.a = Constant(from.bits != 0 ? ~0u : 0u, 4);
    status = Use("mov.pred", in, &out);
  } else {
    status = Use(size == 8 ? "mov.64" : "mov.32", in, &out);
  }
  if (status.ok()) Emit(out);
  return status;
}

absl::Status Compiler::CompileCvt(const PtxInstr& in, Instr* out) {
  if (in.types.size() != 2 || in.Has("relu") || in.Has("satfinite")) return Unsupported(in);
  const Type to = in.types[0], from = in.types[1];
  absl::StatusOr<Ref> d = Destination(in.operands[0], in), a = Source(in.operands[1], from, in);
  if (!d.ok()) return d.status();
  if (!a.ok()) return a.status();
  out->d = *d;
  out->a = *a;
  if (in.operands.size() == 3) {
    absl::StatusOr<Ref> b = Source(in.operands[2], from, in);
    if (!b.ok()) return b.status();
    out->b = *b;
  }
  uint16_t mode = 0;
  for (const std::string& mod : in.mods) {
    if (mod == "rni" || mod == "rzi" || mod == "rmi" || mod == "rpi") mode |= 4;
    if (mod == "rz" || mod == "rzi") mode |= 1;
    if (mod == "rm" || mod == "rmi") mode |= 2;
    if (mod == "rp" || mod == "rpi") mode |= 3;
    if (mod == "sat") mode |= 8;
    if (mod == "ftz") mode |= 16;
    if (mod == "rna") return Unsupported(in);
  }
  if (IsWide(in.operands[0]) && tidepool::ptx::SizeOf(to) < 8) mode |= 32;
  out->aux = mode;
  auto name = [](Type type) { return std::string(tidepool::ptx::Name(type)); };
  auto plain = [&](Type type) {
    switch (type) {
      case Type::kB8:
        return std::string("u8");
      case Type::kB16:
        return std::string("u16");
      case Type::kB32:
        return std::string("u32");
      case Type::kB64:
        return std::string("u64");
      default:
        return name(type);
    }
  };
  return Use(absl::StrCat("cvt.", plain(to), ".", plain(from)), in, out);
}

absl::Status Compiler::CompileSetp(const PtxInstr& in, Instr* out) {
  if (in.opcode == "set") return Unsupported(in);
  std::string comparison;
  for (const std::string& mod : in.mods) {
    if (mod == "and") out->aux = 1;
    if (mod == "or") out->aux = 2;
    if (mod == "xor") out->aux = 3;
    if (comparison.empty() && mod != "ftz") comparison = mod;
  }
  const Type type = in.type();
  absl::StatusOr<Ref> d = Destination(in.operands[0], in), a = Source(in.operands[1], type, in),
                      b = Source(in.operands[2], type, in);
  if (!d.ok()) return d.status();
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  out->d = *d;
  out->a = *a;
  out->b = *b;
  if (!in.operands[0].second.empty()) {
    absl::StatusOr<Ref> e = Destination(in.operands[0].second[0], in);
    if (!e.ok()) return e.status();
    out->e = *e;
  }
  if (out->aux != 0) {
    if (in.operands.size() != 4) return Unsupported(in);
    absl::StatusOr<Ref> c = Source(in.operands[3], Type::kPred, in);
    if (!c.ok()) return c.status();
    out->c = *c;
    out->imm = in.operands[3].negated;
  }
  std::string name(tidepool::ptx::Name(type));
  if (type == Type::kF16 || type == Type::kBF16) {
    static const char* const kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    if (out->aux != 0 || out->e != kNoRef) return Unsupported(in);
    std::string base = comparison;
    if (base.size() == 3 && base[2] == 'u') {
      out->target = 8;
      base = base.substr(0, 2);
    }
    for (uint32_t i = 0; i < 6; ++i) {
      if (base == kNames[i]) {
        out->target |= i;
        return Use("setp." + name, in, out);
      }
    }
    return Unsupported(in);
  }
  if (in.Has("ftz")) return Unsupported(in);
  if (name[0] == 'b' && comparison != "eq" && comparison != "ne") name[0] = 'u';
  return Use(absl::StrCat("setp.", comparison, ".", name), in, out);
}

absl::Status Compiler::Arithmetic(const PtxInstr& in, Instr* out) {
  const std::string& op = in.opcode;
  const Type type = in.type();
  std::string name(tidepool::ptx::Name(type));
  const bool is_float = type == Type::kF32 || type == Type::kF64;
  if (in.operands.size() < 2) return Unsupported(in);
  absl::StatusOr<Ref> d = Destination(in.operands[0], in);
  if (!d.ok()) return d.status();
  out->d = *d;
  Ref* slots[] = {&out->a, &out->b, &out->c, &out->e};
  for (size_t i = 1; i < in.operands.size(); ++i) {
    if (i > 4) return Unsupported(in);
    Type operand_type = type;
    // Shift amounts, positions and lengths are 32 bits; a wide sum's addend is as wide as the
    // result.
    if ((op == "shl" || op == "shr") && i == 2) operand_type = Type::kU32;
    if (op == "bfe" && i >= 2) operand_type = Type::kU32;
    if (op == "bfi" && i >= 3) operand_type = Type::kU32;
    if (op == "mad" && in.Has("wide") && i == 3) {
      operand_type = tidepool::ptx::SizeOf(type) == 4 ? Type::kU64 : Type::kU32;
    }
    if ((op == "selp" || op == "slct") && i == 3) operand_type = Type::kPred;
    absl::StatusOr<Ref> ref = Source(in.operands[i], operand_type, in);
    if (!ref.ok()) return ref.status();
    *slots[i - 1] = *ref;
  }
  if (op == "selp") {
    out->imm = in.operands[3].negated;
    return Use(tidepool::ptx::SizeOf(type) == 8 ? "selp.64" : "selp.32", in, out);
  }
  if (type == Type::kPred) {
    out->imm = (in.operands[1].negated ? 1 : 0) |
               (in.operands.size() > 2 && in.operands[2].negated ? 2 : 0);
    return Use(op + ".pred", in, out);
  }
  if (op == "lop3") {
    // The table is the last operand.
    if (in.operands.size() != 5 || in.operands[4].kind != Operand::Kind::kInteger) {
      return Unsupported(in);
    }
    out->aux = static_cast<uint16_t>(in.operands[4].bits);
    out->e = kNoRef;
    return Use("lop3.b32", in, out);
  }
  if (op == "shf") {
    out->aux = in.Has("wrap");
    return Use(in.Has("l") ? "shf.l.b32" : "shf.r.b32", in, out);
  }
  if (op == "prmt" && in.mods.size() > 1) return Unsupported(in);
  if (op == "bfind") out->aux = in.Has("shiftamt");
  if (op == "testp") {
    static const char* const kKinds[] = {"finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal"};
    for (uint16_t i = 0; i < 6; ++i) {
      if (in.Has(kKinds[i])) out->aux = i;
    }
    return Use("testp." + name, in, out);
  }
  if (op == "addc" || op == "subc" || ((op == "add" || op == "sub") && in.Has("cc"))) {
    if (tidepool::ptx::SizeOf(type) != 4) return Unsupported(in);
    out->e = carry_;
    return Use(in.Has("cc") ? op + ".cc" : op, in, out);
  }
  if (op == "mul" || op == "mad") {
    if (!is_float && type != Type::kF16 && type != Type::kF16x2 && type != Type::kBF16 &&
        type != Type::kBF16x2) {
      const char* part = in.Has("wide") ? ".wide." : in.Has("hi") ? ".hi." : ".lo.";
      if (in.Has("sat") || in.Has("cc")) return Unsupported(in);
      return Use(absl::StrCat(op, part, name), in, out);
    }
  }
  std::string key = op == "mad" ? "fma" : op;
  if (is_float) {
    out->flops = key == "fma" ? 2 : 1;
    for (const std::string& mod : in.mods) {
      if (mod == "rz") out->aux = 1;
      if (mod == "rm") out->aux = 2;
      if (mod == "rp") out->aux = 3;
      if (mod == "NaN" || mod == "xorsign") return Unsupported(in);
    }
    if (out->aux != 0) {
      if (in.Has("ftz") || in.Has("sat")) return Unsupported(in);
      return Use(absl::StrCat(key, ".directed.", name), in, out);
    }
    if (in.Has("ftz") && type == Type::kF32) key += ".ftz";
    if (in.Has("sat")) key += ".sat";
  } else if (in.Has("sat") || in.Has("relu") || in.Has("NaN")) {
    return Unsupported(in);
  }
  if ((op == "add" || op == "sub" || op == "min" || op == "max") && name[0] == 'b' &&
      type != Type::kBF16 && type != Type::kBF16x2) {
    name[0] = 'u';
  }
  return Use(absl::StrCat(key, ".", name), in, out);
}

}  // namespace simgpu
