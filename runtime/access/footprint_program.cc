#include "runtime/access/footprint_program.h"

#include <set>

#include "runtime/access/step_decoder.h"

namespace tidepool {
namespace {

using ptx::Instruction;
using ptx::Operand;

class Slicer {
 public:
  Slicer(const ptx::Module& module, const ptx::Function& entry)
      : module_(module), entry_(entry), flow_(entry) {}
  std::unique_ptr<FootprintProgram> Run();

 private:
  // A thread that ends inside a device function does not come back to what follows the call.
  bool MayEndInside() const;
  bool Relevant(const Step& step) const {
    return step.kind == StepKind::kStore || (step.d != ptx::kNoIndex && wanted_[step.d]) ||
           (step.d2 != ptx::kNoIndex && wanted_[step.d2]);
  }
  void Want(const Source& source) {
    if (source.kind == Source::Kind::kRegister && !wanted_[source.reg]) {
      wanted_[source.reg] = true;
      grew_ = true;
    }
  }

  const ptx::Module& module_;
  const ptx::Function& entry_;
  ControlFlow flow_;
  std::vector<std::vector<Step>> decoded_;  // by block
  std::vector<bool> wanted_;                // registers
  bool grew_ = false;
};

bool Slicer::MayEndInside() const {
  std::set<const ptx::Function*> seen = {&entry_};
  std::vector<const ptx::Function*> work = {&entry_};
  while (!work.empty()) {
    const ptx::Function* function = work.back();
    work.pop_back();
    for (const Instruction& in : function->body) {
      if (function != &entry_ && in.opcode == "exit") return true;
      if (in.opcode != "call" || in.operands.empty()) continue;
      for (const ptx::Function& callee : module_.functions) {
        const bool named = in.operands[0].kind == Operand::Kind::kSymbol;
        // (An indirect call may go to any of them.)
        if (callee.is_entry || (named && callee.name != in.operands[0].name)) continue;
        if (seen.insert(&callee).second) work.push_back(&callee);
      }
    }
  }
  return false;
}

std::unique_ptr<FootprintProgram> Slicer::Run() {
  if (MayEndInside()) return nullptr;
  const std::vector<BasicBlock>& blocks = flow_.blocks();
  wanted_.assign(entry_.registers.size(), false);
  decoded_.resize(blocks.size());
  const StepDecoder decoder(entry_);
  bool stores = false;
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) {
      for (Step& step : decoder.Decode(entry_.body[i])) {
        stores |= step.kind == StepKind::kStore;
        decoded_[b].push_back(step);
      }
    }
  }
  if (!stores) return nullptr;
  std::vector<std::vector<uint32_t>> regions(blocks.size());
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].successors.size() > 1) regions[b] = flow_.Region(b);
  }
  const auto condition = [&](uint32_t b) {
    const Instruction& last = entry_.body[blocks[b].end - 1];
    Source source;
    if (!blocks[b].conditional) return source;
    source.kind = Source::Kind::kRegister;
    source.reg = last.guard;
    source.negated = last.guard_negated;
    return source;
  };
  const auto decides = [&](uint32_t b) {
    // A way that never reaches the exit is no way that matters, but the branch must be looked at.
    if (blocks[b].postdominator == kNoBlock) return true;
    for (uint32_t r : regions[b]) {
      for (const Step& step : decoded_[r]) {
        if (Relevant(step)) return true;
      }
    }
    return false;
  };
  do {
    grew_ = false;
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (const Step& step : decoded_[b]) {
        if (!Relevant(step)) continue;
        for (const Source* source : {&step.a, &step.b, &step.c, &step.guard}) Want(*source);
      }
      if (blocks[b].conditional && decides(b)) Want(condition(b));
    }
  } while (grew_);

  auto program = std::make_unique<FootprintProgram>();
  program->exit = flow_.exit();
  program->registers = static_cast<uint32_t>(entry_.registers.size());
  std::set<ParameterUse> parameters;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    SlicedBlock& block = program->blocks.emplace_back();
    block.successors = blocks[b].successors;
    block.postdominator = blocks[b].postdominator;
    block.condition = condition(b);
    block.decided = blocks[b].successors.size() < 2 || blocks[b].conditional;
    block.skips = blocks[b].successors.size() > 1 && !decides(b);
    for (const Step& step : decoded_[b]) {
      if (!Relevant(step)) continue;
      block.steps.push_back(step);
      if (step.kind == StepKind::kParam) {
        parameters.insert({static_cast<uint32_t>(step.number), step.bytes});
      }
    }
    std::set<uint32_t> defines;
    for (uint32_t r : regions[b]) {
      for (const Step& step : decoded_[r]) {
        if (step.d != ptx::kNoIndex && wanted_[step.d]) defines.insert(step.d);
        if (step.d2 != ptx::kNoIndex && wanted_[step.d2]) defines.insert(step.d2);
      }
    }
    block.region_defines.assign(defines.begin(), defines.end());
  }
  program->parameters.assign(parameters.begin(), parameters.end());
  return program;
}

}  // namespace

std::unique_ptr<FootprintProgram> Slice(const ptx::Module& module, const ptx::Function& entry) {
  return Slicer(module, entry).Run();
}

}  // namespace tidepool
