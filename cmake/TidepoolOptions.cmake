# Flags that every target of the project gets, and the helper that declares a unit test.
add_library(tidepool_options INTERFACE)
target_include_directories(tidepool_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(tidepool_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Werror -fvisibility=hidden>
  $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
  # gcc 12 warns of overlaps in std::string that cannot be (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# A target with the property TIDEPOOL_UNINSTRUMENTED is only linked with the sanitizers.
if(TIDEPOOL_SANITIZE)
  set(instrumented $<NOT:$<BOOL:$<TARGET_PROPERTY:TIDEPOOL_UNINSTRUMENTED>>>)
  target_compile_options(tidepool_options INTERFACE
    $<${instrumented}:-fsanitize=${TIDEPOOL_SANITIZE}>
    -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(tidepool_options INTERFACE -fsanitize=${TIDEPOOL_SANITIZE})
endif()
# Every object tells libFuzzer what it runs; only the targets in tests/fuzz have its main.
if(TIDEPOOL_FUZZ)
  target_compile_options(tidepool_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
  # The usual name; work that is bounded, but not quick, is cut short.
  target_compile_definitions(tidepool_options INTERFACE FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
endif()

# tidepool_test(NAME SOURCES... [LIBS ...] [LABELS ...] [NO_PCH]): a GoogleTest binary and its ctest entry. Label
# `threads`: it starts threads, and so has something to show to ThreadSanitizer.
add_custom_target(unit_tests)
add_custom_target(thread_tests)
function(tidepool_test name)
  cmake_parse_arguments(ARG "NO_PCH" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tidepool_options ${ARG_LIBS} GTest::gtest GTest::gmock
    GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(unit_tests ${name})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(thread_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "unit;${ARG_LABELS}")
  if(NOT ARG_NO_PCH)
    tidepool_use_pch(tests ${name})
  endif()
endfunction()

# tidepool_bench(NAME SOURCES... [LIBS ...]): a Google Benchmark binary; never run by ctest.
function(tidepool_bench name)
  if(NOT TIDEPOOL_BENCH)
    return()
  endif()
  find_package(benchmark REQUIRED)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tidepool_options ${ARG_LIBS} benchmark::benchmark
    benchmark::benchmark_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()
