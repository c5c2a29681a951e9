// The table of handlers, by canonical name. Names and types come as plain C strings, and no
// standard template is used by the families that are built once more for AVX2: an inline function
// that such a file instantiates could otherwise be the copy that the linker keeps for everybody.
#pragma once

#include <string>

#include "tools/simgpu/exec/code.h"

namespace simgpu {

// Receives the handlers of "op.type" ("op" where type is empty).
struct HandlerSink {
  void (*put)(void* table, const char* op, const char* type, Handler full, Handler masked);
  void* table;
  void Put(const char* op, const char* type, Handler full, Handler masked) const {
    put(table, op, type, full, masked);
  }
  void Put(const char* op, const char* type, Handler both) const {
    put(table, op, type, both, both);
  }
};

// Vectorised families, built for the baseline and for AVX2 with the same results.
void RegisterIntegerBase(const HandlerSink& sink);
void RegisterIntegerAvx2(const HandlerSink& sink);
void RegisterFloatBase(const HandlerSink& sink);
void RegisterFloatAvx2(const HandlerSink& sink);
void RegisterApproxBase(const HandlerSink& sink);
void RegisterApproxAvx2(const HandlerSink& sink);
void RegisterCompareBase(const HandlerSink& sink);
void RegisterCompareAvx2(const HandlerSink& sink);
void RegisterConvertBase(const HandlerSink& sink);
void RegisterConvertAvx2(const HandlerSink& sink);
void RegisterHalfBase(const HandlerSink& sink);
void RegisterHalfAvx2(const HandlerSink& sink);
void RegisterMemoryBase(const HandlerSink& sink);
void RegisterMemoryAvx2(const HandlerSink& sink);
// The others.
void RegisterBits(const HandlerSink& sink);
void RegisterVideo(const HandlerSink& sink);
void RegisterConversions(const HandlerSink& sink);
void RegisterAtomics(const HandlerSink& sink);
void RegisterWarp(const HandlerSink& sink);
void RegisterSpecial(const HandlerSink& sink);
void RegisterMisc(const HandlerSink& sink);

// Null if there is none. Thread-safe.
const HandlerPair* FindHandler(const std::string& name);
// From now on programs are loaded as on a machine without AVX2 (for tests).
void UseBaselineHandlers(bool on);

}  // namespace simgpu
