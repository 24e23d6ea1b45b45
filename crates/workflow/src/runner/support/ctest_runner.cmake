# Configures, builds and tests a project of CMake, with all that is built beside the report. It ends with an error if a
# step failed.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S "${CMAKE_SOURCE_DIR}" -B "${REPORTS}/build" -Wno-dev
  RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "the project could not be configured")
endif()
# A target that cannot be built leaves its tests out, and the others are run.
execute_process(COMMAND ${CMAKE_COMMAND} --build "${REPORTS}/build" --parallel 2 -- -k RESULT_VARIABLE built)
set(choice "")
if(DEFINED PATTERN)
  set(choice "--tests-regex" "${PATTERN}")
endif()
execute_process(
  COMMAND ctest --test-dir "${REPORTS}/build" --no-tests=ignore --output-on-failure --output-junit "${REPORTS}/report.xml" ${choice}
  RESULT_VARIABLE tested)
if(NOT built EQUAL 0)
  message(FATAL_ERROR "the project could not be built")
endif()
if(NOT tested EQUAL 0)
  message(FATAL_ERROR "tests failed")
endif()
