// Trains a small GPT on the characters of a text file and prints what it learnt as bits: the loss
// of every step, and digests of all parameters and gradients at the end.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model.h"

namespace {

void Usage(FILE* to) {
  std::fprintf(
      to,
      "usage: gpt [--data FILE] [--steps N] [--batch N] [--seq N] [--layers N] [--heads N]\n"
      "           [--channels N] [--lr X] [--dropout P] [--seed N]\n");
}

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "gpt: %s\n", message.c_str());
  std::exit(2);
}

int ParseInt(const std::string& name, const char* text, int least, int most) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < least || value > most) {
    Fail(name + " takes a number from " + std::to_string(least) + " to " + std::to_string(most) +
         ", not \"" + text + "\"");
  }
  return static_cast<int>(value);
}

float ParseFloat(const std::string& name, const char* text, float least, float below) {
  char* end = nullptr;
  const float value = std::strtof(text, &end);
  if (*text == '\0' || *end != '\0' || !(value >= least) || !(value < below)) {
    Fail(name + " is out of range: \"" + text + "\"");
  }
  return value;
}

Config ParseArguments(int argc, char** argv) {
  Config config;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help") {
      Usage(stdout);
      std::exit(0);
    }
    if (i + 1 >= argc) {
      Usage(stderr);
      std::exit(2);
    }
    const char* value = argv[++i];
    if (name == "--data") {
      config.data = value;
    } else if (name == "--steps") {
      config.steps = ParseInt(name, value, 1, 1000000);
    } else if (name == "--batch") {
      config.batch = ParseInt(name, value, 1, 1024);
    } else if (name == "--seq") {
      config.sequence = ParseInt(name, value, 2, 1024);
    } else if (name == "--layers") {
      config.layers = ParseInt(name, value, 1, 1000);
    } else if (name == "--heads") {
      config.heads = ParseInt(name, value, 1, 256);
    } else if (name == "--channels") {
      config.channels = ParseInt(name, value, 1, 1024);
    } else if (name == "--lr") {
      config.rate = ParseFloat(name, value, 0, 10);
    } else if (name == "--dropout") {
      config.dropout = ParseFloat(name, value, 0, 1);
    } else if (name == "--seed") {
      config.seed = static_cast<uint64_t>(ParseInt(name, value, 0, 2147483647));
    } else {
      Usage(stderr);
      std::exit(2);
    }
  }
  if (config.channels % config.heads != 0) Fail("--channels must be a multiple of --heads");
  return config;
}

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

int main(int argc, char** argv) {
  const Config config = ParseArguments(argc, argv);
  std::ifstream file(config.data, std::ios::binary);
  if (!file) Fail("cannot read " + config.data);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (text.size() <= static_cast<size_t>(config.sequence) + 1) Fail(config.data + " is too short");

  int ids[256];
  std::fill(ids, ids + 256, -1);
  int vocabulary = 0;
  for (int letter = 0; letter < 256; ++letter) {
    if (text.find(static_cast<char>(letter)) != std::string::npos) ids[letter] = vocabulary++;
  }

  Model model(config, vocabulary);
  std::printf("gpt: %d layers, %d heads, %d channels, sequence %d, batch %d, vocabulary %d\n",
              config.layers, config.heads, config.channels, config.sequence, config.batch,
              vocabulary);
  std::printf("%zu parameters, %zu bytes of text\n", model.parameter_count(), text.size());

  const int rows = config.batch * config.sequence;
  std::vector<int> tokens(rows), targets(rows);
  for (int step = 0; step < config.steps; ++step) {
    for (int b = 0; b < config.batch; ++b) {
      const uint64_t draw = Mix(config.seed * 1000003 + static_cast<uint64_t>(step) * 4099 + b);
      const size_t start = draw % (text.size() - config.sequence - 1);
      for (int t = 0; t < config.sequence; ++t) {
        tokens[b * config.sequence + t] = ids[static_cast<unsigned char>(text[start + t])];
        targets[b * config.sequence + t] = ids[static_cast<unsigned char>(text[start + t + 1])];
      }
    }
    const float loss = model.Step(tokens, targets, step);
    uint32_t bits = 0;
    std::memcpy(&bits, &loss, sizeof(bits));
    std::printf("step %d loss %.6f (%08" PRIx32 ")\n", step, loss, bits);
    std::fflush(stdout);
  }
  std::printf("parameters %016" PRIx64 "\n", model.ParameterDigest());
  std::printf("gradients  %016" PRIx64 "\n", model.GradientDigest());
  std::printf("peak of tensors %zu bytes\n", DeviceBytes::peak);
  return 0;
}
